#include "apps/trinco/doctor/examine_mirror.hpp"

#include <string>
#include <utility>

#include "apps/trinco/doctor/examine_local.hpp"
#include "store/shown_url.hpp"

namespace trinco::program::doctor {

void examine_mirror(const settings& with, examination& to) {
    const std::string scheme = trinco::detail::scheme_of(with.breakers_url);
    if (scheme == "local" || scheme == "memory" || with.mirror_url == "none") return;
    settings of_mirror = with;
    of_mirror.breakers_url = with.mirror_url;
    examination aside;
    examine_local(of_mirror, needs::breakers, aside);
    for (finding& one : aside.all) {
        if (one.how != level::bad) continue;
        return to.warn("mirror",
                       trinco::detail::shown_url(with.mirror_url) +
                           " cannot be used: " + one.sentence +
                           "; while the server is away 'trinco call' makes calls without their "
                           "breaker",
                       one.advice.empty() ? "name another file by breakers.mirror, or none"
                                          : std::move(one.advice));
    }
}

}  // namespace trinco::program::doctor
