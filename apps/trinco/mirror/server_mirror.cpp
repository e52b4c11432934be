#include "apps/trinco/mirror/server_mirror.hpp"

#include <system_error>
#include <utility>

#include "apps/trinco/mirror/mirror_names.hpp"
#include "apps/trinco/mirror/row.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

using trinco::detail::control_verb;

// Throws what the driver throws.
store open_local(const settings& with, const std::string& name_space, std::string_view instance) {
    store_settings how;
    how.name_space = name_space;
    how.instance = instance;
    how.voter = with.instance;
    return trinco::open(with.mirror_url, all_drivers(), how);
}

std::string name_of(server_mirror::trouble_t kind) {
    return kind == server_mirror::trouble_t::away ? "away" : "no-writes";
}

}  // namespace

server_mirror::server_mirror(store stand_in, store memory, store server)
    : stand_in_(std::move(stand_in)), memory_(std::move(memory)), server_(std::move(server)) {}

std::optional<server_mirror> server_mirror::open(const settings& with, std::string_view instance,
                                                 std::string* why_not) {
    const std::string scheme = detail::scheme_of(with.breakers_url);
    if (scheme == "local" || scheme == "memory" || with.mirror_url == "none") return std::nullopt;
    const mirror_names names = mirror_names_of(with.breakers_url, with.name_space);
    try {
        store stand_in = open_local(with, names.stand_in, instance);
        if (!stand_in || !stand_in.has_breakers()) return std::nullopt;
        return server_mirror(std::move(stand_in), open_local(with, names.memory, instance),
                             open_local(with, names.server, instance));
    } catch (const std::system_error& e) {  // open_error, or what the system refused
        if (why_not != nullptr) *why_not = e.what();
        return std::nullopt;
    }
}

detail::view server_mirror::last_view(const std::string& breaker) const {
    detail::view v = row::look(memory_, breaker);
    v.options_stamp = 0;  // the memory's own
    return v;
}

told_options server_mirror::last_options(const std::string& breaker) const {
    auto r = row::read(server_, breaker);
    if (!r) return {};
    return {std::move(r->options), r->now.fleet.options_stamp};
}

void server_mirror::remember(const std::string& breaker, const told& what) {
    // Options would be a change of their own in the record of the view.
    static_cast<void>(row::exchange(memory_, again(breaker, what.fleet, {})));
    if (what.options.text.empty()) return;
    if (row::look(server_, breaker).options_stamp == what.options.stamp) return;
    static_cast<void>(row::exchange(server_, again(breaker, {}, what.options)));
}

std::optional<server_mirror::trouble> server_mirror::has(trouble_t kind) const {
    detail::view v = row::look(server_, name_of(kind));
    if (v.state != breaker_state::open) return std::nullopt;
    return trouble{std::move(v.reason), v.remaining};
}

void server_mirror::note(trouble_t kind, const trouble& what) {
    detail::control_request trip;
    trip.breaker = name_of(kind);
    trip.verb = control_verb::trip;
    trip.reason = what.why;
    trip.expires = what.left;
    static_cast<void>(row::control(server_, std::move(trip)));
}

void server_mirror::is_over(trouble_t kind) {
    detail::control_request what;
    what.breaker = name_of(kind);
    what.verb = control_verb::reset;
    static_cast<void>(row::control(server_, std::move(what)));
}

}  // namespace trinco::program
