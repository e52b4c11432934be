#include "apps/trinco/doctor/tls_words.hpp"

#include <algorithm>

namespace trinco::program::doctor {
namespace {

bool is_this_machine(const trinco::detail::stream_address& where) {
    return where.host == "localhost" || where.host == "::1" || where.host.starts_with("127.");
}

}  // namespace

void judge_tls(const std::optional<trinco::detail::tls_settings>& tls,
               const std::vector<trinco::detail::stream_address>& addresses,
               const std::optional<secret_on_the_way>& secret, examination& to) {
    if (tls && !tls->verify) {
        return to.warn("tls",
                       "anybody is believed (verify=no): whoever is in between can read and change "
                       "everything",
                       "take verify=no away; ca=FILE names the authority to believe");
    }
    if (tls) {
        return to.good("tls",
                       "the certificates are for the names that were asked for, and "
                       "believed");
    }
    const bool is_near = std::all_of(addresses.begin(), addresses.end(), is_this_machine);
    if (secret && !is_near) to.warn("tls", secret->what + " in the clear", secret->advice);
}

}  // namespace trinco::program::doctor
