// Completions that wait: a slot for one, and an answer that is known already.
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>
#include <utility>

#include "net/event_loop_impl.hpp"

namespace trinco::detail {

// One completion, and the ticket by which its op finds it: an op of an earlier one drops nothing.
template <class T>
class pending {
public:
    std::uint64_t put(completion<T> done) {
        done_ = std::move(done);
        return ++ticket_;
    }
    // What was taken waits again, by the same ticket.
    void put_back(completion<T> done) noexcept { done_ = std::move(done); }
    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(done_); }
    [[nodiscard]] bool is(std::uint64_t ticket) const noexcept {
        return done_ && ticket == ticket_;
    }
    [[nodiscard]] bool was(std::uint64_t ticket) const noexcept { return ticket == ticket_; }
    [[nodiscard]] completion<T> take() noexcept { return std::move(done_); }

private:
    completion<T> done_;
    std::uint64_t ticket_ = 0;
};

// For what ends in the loop's own turn.
template <class T>
void complete(completion<T> done, std::error_code error, T value) noexcept {
    unique_function<void()> call = [&] { done(error, std::move(value)); };
    run_guarded(call);
}

// For what is known inside the call.
template <class T>
[[nodiscard]] op refuse(event_loop::impl& on, completion<T> done, std::error_code error) {
    const auto held = std::make_shared<completion<T>>(std::move(done));
    on.post([held, error] {
        if (!*held) return;
        auto call = std::move(*held);
        call(error, T{});
    });
    return op([rest = std::weak_ptr(held)] {
        if (const auto alive = rest.lock()) const auto dropped = std::move(*alive);
    });
}

}  // namespace trinco::detail
