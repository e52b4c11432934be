#include "apps/trinco/stores/settings_for.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "apps/trinco/start/executables.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "store/open.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

bool can_open(const std::string& url) {
    const std::string scheme = detail::scheme_of(url);
    const auto all = all_drivers();
    return std::any_of(all.begin(), all.end(), [&](const driver& one) {
        const auto known = detail::store_access::driver_of(one)->schemes();
        return std::find(known.begin(), known.end(), scheme) != known.end();
    });
}

}  // namespace

bool is_read_once(const store_flags& flags) {
    const char* const named = flags.config ? flags.config->c_str() : std::getenv("TRINCO_CONFIG");
    struct ::stat found {};
    if (named == nullptr || std::string_view(named) == "/dev/null") return false;
    return ::stat(named, &found) == 0 && !S_ISREG(found.st_mode);
}

std::variant<settings, problem> settings_for(const store_flags& flags,
                                             std::initializer_list<needs> what) {
    if (has_every_store()) return load_settings(flags);
    if (is_read_once(flags)) {
        if (const auto fleet = fleet_file()) return go_on_as(*fleet);
    }
    auto loaded = load_settings(flags);
    const auto* const with = std::get_if<settings>(&loaded);
    if (with == nullptr) return loaded;
    for (const needs one : what) {
        const std::string& url = one == needs::locks ? with->locks_url : with->breakers_url;
        if (can_open(url)) continue;
        const auto fleet = fleet_file();
        return fleet ? go_on_as(*fleet) : no_fleet_for(detail::shown_url(url));
    }
    return loaded;
}

}  // namespace trinco::program
