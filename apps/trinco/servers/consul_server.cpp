#include <optional>
#include <string>
#include <string_view>

#include "apps/trinco/doctor/examine_consul.hpp"
#include "apps/trinco/servers/servers.hpp"
#include "store/consul/consul_layout.hpp"
#include "trinco/consul.hpp"

namespace trinco::program {
namespace {

std::optional<std::string> check_name(std::string_view name, bool is_beginning) {
    if (!is_beginning) return detail::consul::check_consul_name(name);
    // What the last segment begins with may be nothing yet.
    if (name.size() > 1 && name.ends_with('/')) name.remove_suffix(1);
    if (name.empty()) return std::nullopt;
    auto bad = detail::consul::check_segments(name);
    if (bad) bad->insert(0, "the beginning ");
    return bad;
}

}  // namespace

server_store consul_server() {
    return {.how = drivers::consul(),
            .examine_locks = doctor::examine_consul,
            .check_lock_name = check_name};
}

}  // namespace trinco::program
