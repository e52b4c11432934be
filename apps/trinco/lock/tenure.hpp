// For how long the command may run, from what the lock says of itself. Pure.
#pragma once

#include <chrono>
#include <optional>

#include "apps/trinco/process/guardian.hpp"
#include "core/loop.hpp"

namespace trinco::program {

// The lock at a moment. `now` was read before the rest, so that a pause between the two makes the
// command's time shorter, never longer.
struct lock_look {
    detail::boot_clock::time_point now;
    std::chrono::nanoseconds valid_for{0};  // 0 also while the clocks are in doubt
    bool held = false;
    bool asked_back = false;      // by an operator
    bool is_uncertain = false;    // held still, but not renewed when it should have been
    std::chrono::seconds ttl{0};  // of the lease
};

class tenure {
public:
    // `ignores`: the command runs on, whatever happens to the lock.
    tenure(std::chrono::milliseconds grace, bool ignores) noexcept
        : grace_(grace), ignores_(ignores) {}

    // While it is held: `end` when it may be lost, `act` a grace before. Asked back, or lost
    // already: at once, and a grace later, but not beyond what was believed last.
    [[nodiscard]] deadlines until(const lock_look& at);
    // By what was said last, whether the command may run at this moment.
    [[nodiscard]] bool allows(detail::boot_clock::time_point now) const noexcept {
        return ignores_ || now < said_.act;
    }
    // Until when the lock is kept, as far as was known last.
    [[nodiscard]] detail::boot_clock::time_point believed() const noexcept { return believed_; }

private:
    const std::chrono::milliseconds grace_;
    const bool ignores_;
    detail::boot_clock::time_point believed_{};
    std::optional<detail::boot_clock::time_point> stop_;  // since when it is to end
    deadlines said_{};
};

}  // namespace trinco::program
