#include "apps/trinco/lock/renewal_notice.hpp"

#include <utility>

#include "apps/trinco/lock/lock_words.hpp"
#include "core/lock/lease.hpp"

namespace trinco::program {

std::string renewal_notice::look(const lock_look& at, const std::function<std::string()>& trouble) {
    if (!at.held || at.asked_back) return {};
    // As of a machine that slept, or whose wall clock was set.
    const auto is = !at.is_uncertain            ? said_t::nothing
                    : at.valid_for.count() <= 0 ? said_t::clocks
                                                : said_t::overdue;
    if (std::exchange(said_, is) == is) return {};
    if (is == said_t::nothing) return "it is renewed again";
    if (is == said_t::clocks) {
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
