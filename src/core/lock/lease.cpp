#include "core/lock/lease.hpp"

#include <utility>

#include "core/mutant.hpp"

namespace trinco::detail {

lease_machine::lease_machine(clocks sent, clocks now, std::chrono::seconds ttl)
    : ttl_(std::min(ttl, lease_timing::longest_ttl)),
      confirmed_(sent),
      deadline_(sent.boot + lease_timing::believed(ttl_)),
      next_attempt_(sent.boot + lease_timing::renew_after(ttl_)) {
    observe(now);
}

bool lease_machine::moved(clocks now) const {
    const auto difference = (now.wall - confirmed_.wall) - (now.boot - confirmed_.boot);
    return std::chrono::abs(difference) > lease_timing::margin(ttl_);
}

lease_state lease_machine::state(clocks now) const {
    if (ended_ || now.boot >= deadline_) return lease_state::lost;
    const bool late = now.boot >= confirmed_.boot + lease_timing::uncertain_after(ttl_);
    return late || clocks_moved_ || moved(now) ? lease_state::uncertain : lease_state::held;
}

lease_state lease_machine::observe(clocks now) {
    if (now.boot >= deadline_) ended_ = true;
    if (!clocks_moved_ && moved(now)) {
        clocks_moved_ = true;
        next_attempt_ = now.boot;
    }
    return state(now);
}

void lease_machine::use(lease_use for_what) {
    if (std::exchange(use_, for_what) == for_what || attempted_ || clocks_moved_) return;
    next_attempt_ = confirmed_.boot + lease_timing::renew_after(ttl_, use_);
}

bool lease_machine::renewal_due(clocks now) const {
    return state(now) != lease_state::lost && now.boot >= next_attempt_;
}

deadline lease_machine::renewal_sent(clocks now) {
    attempted_ = true;
    next_attempt_ = now.boot + lease_timing::retry_after(ttl_);
    return std::min(deadline_, now.boot + lease_timing::attempt(ttl_));
}

void lease_machine::renewed(clocks sent, clocks now, std::chrono::seconds ttl) {
    if (observe(now) == lease_state::lost) return;
    if (sent.boot < confirmed_.boot) return;  // overtaken by the answer to a later attempt
    ttl_ = std::min(ttl, lease_timing::longest_ttl);
    confirmed_ = TRINCO_MUTANT("lease_deadline_from_reply") ? now : sent;
    deadline_ = confirmed_.boot + lease_timing::believed(ttl_);
    attempted_ = false;
    next_attempt_ = std::max(now.boot, confirmed_.boot + lease_timing::renew_after(ttl_, use_));
    clocks_moved_ = moved(now);
    if (clocks_moved_) next_attempt_ = now.boot;
    observe(now);
}

boot_clock::time_point lease_machine::next_wake(clocks now) const {
    const auto now_state = state(now);
    if (now_state == lease_state::lost) return boot_clock::time_point::max();
    auto wake = std::min(deadline_, next_attempt_);
    const auto doubt = confirmed_.boot + lease_timing::uncertain_after(ttl_);
    if (doubt > now.boot) wake = std::min(wake, doubt);
    return wake;
}

boot_clock::duration lease_machine::valid_for(clocks now) const {
    if (state(now) == lease_state::lost || clocks_moved_ || moved(now)) return {};
    return deadline_ - now.boot;
}

}  // namespace trinco::detail
