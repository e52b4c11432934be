// How long whoever reads again by itself waits before it does: longer and longer, with jitter,
// while reading fails, or while what it watches from is compacted away time and again.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/backoff.hpp"
#include "core/loop.hpp"

namespace trinco::detail::etcd {

class reading_pauses {
public:
    [[nodiscard]] boot_clock::duration after_failure(loop& on) {
        return waits.wait(failures_++, on.random());
    }
    // The first time at once: nothing is wrong with one compaction.
    [[nodiscard]] boot_clock::duration after_compaction(loop& on) {
        if (compactions_++ == 0) return {};
        return waits.wait(compactions_ - 2, on.random());
    }
    void have_read() noexcept { failures_ = 0; }
    // A watch has told something, or was not ended until a reading was due anyway.
    void have_watched() noexcept { compactions_ = 0; }

private:
    static constexpr backoff waits{std::chrono::milliseconds(200),
                                   std::chrono::milliseconds(2'000)};

    std::uint32_t failures_ = 0;     // in a row
    std::uint32_t compactions_ = 0;  // as here
};

}  // namespace trinco::detail::etcd
