// Triggers the stop_tokens of guarded calls at their call_timeout.
//
// The real one is a thread for the whole process, started at the first call that needs it.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>

namespace trinco::detail {

class call_timer {
public:
    virtual ~call_timer() = default;
    // Requests the stop after that time. The number is for cancel(); never 0.
    [[nodiscard]] virtual std::uint64_t start(std::chrono::milliseconds after,
                                              std::stop_source what) = 0;
    // Does nothing when it has happened.
    virtual void cancel(std::uint64_t number) noexcept = 0;

    // The process's own. Lives until the end of the process.
    [[nodiscard]] static call_timer& real();
};

}  // namespace trinco::detail
