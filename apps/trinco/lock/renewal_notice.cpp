#include "apps/trinco/lock/renewal_notice.hpp"

#include <utility>

#include "apps/trinco/lock/lock_words.hpp"
#include "core/lock/lease.hpp"

namespace trinco::program {

std::string renewal_notice::look(const lock_look& at, const std::function<std::string()>& trouble) {
    if (!at.held || at.asked_back || at.is_uncertain == is_said_) return {};
    is_said_ = at.is_uncertain;
    if (!is_said_) return "it is renewed again";
    // As of a machine that slept, or whose wall clock was set.
    if (at.valid_for.count() <= 0) {
        return "the clocks of this machine do not agree on how long it has been held; it is kept "
               "unless the next renewal fails";
    }
    const auto silent = detail::lease_timing::believed(at.ttl) - at.valid_for;
    const auto why = trouble();
    return "it has not been renewed for " + short_time_words(silent) +
           (why.empty() ? "" : " (" + why + ")") + "; it is lost in " +
           short_time_words(at.valid_for) + " unless that succeeds";
}

}  // namespace trinco::program
