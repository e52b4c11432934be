#include "apps/trinco/locks/locks_scene.hpp"

#include <optional>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/live_names.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {

lock_scope scope_of(std::string word) {
    const bool is_prefix = word.empty() || word.ends_with('*') || word.ends_with('/');
    if (word.ends_with('*')) word.pop_back();
    return {.beginning = std::move(word), .whole_name = !is_prefix};
}

std::variant<locks_scene, problem> open_scene(const store_flags& where, lock_scope scope) {
    auto loaded = settings_for(where, {needs::locks});
    if (auto* const bad = std::get_if<problem>(&loaded)) return std::move(*bad);
    const auto& with = std::get<settings>(loaded);
    scope.prefix = with.prefix;
    if (auto bad = check_scope(scope)) return std::move(*bad);
    if (const auto bad =
            check_lock_name_at(with.locks_url, scope.prefix + scope.beginning, !scope.whole_name)) {
        const auto where_not = " the store " + detail::shown_url(with.locks_url);
        return problem{exit_usage, (scope.whole_name
                                        ? "no lock of" + where_not + " is called so: "
                                        : "what begins so cannot be listed in" + where_not + ": ") +
                                       *bad};
    }
    auto opened = open_store(with, needs::locks);
    if (auto* const bad = std::get_if<problem>(&opened)) return std::move(*bad);
    return locks_scene{std::move(std::get<store>(opened)), std::move(scope)};
}

void complete_locks(arguments& to, std::string_view placeholder, const store_flags& where) {
    to.complete_with(placeholder, [&where] { return live_locks(where); });
}

listening ring_at_changes(const locks_scene& scene, std::shared_ptr<bell> door) {
    const auto& scope = scene.scope;
    std::string name = scope.whole_name ? scope.prefix + scope.beginning : "";
    return {scene.at, [name = std::move(name), door = std::move(door)](detail::lock_store* locks,
                                                                       detail::breaker_store*) {
                if (name.empty()) return detail::op();
                return locks->observe(
                    name, [door](const std::optional<detail::entry>&) { door->ring(); });
            }};
}

std::string nothing_there(const locks_scene& scene) {
    const std::string where = " in the store " + std::string(scene.at.url());
    const auto& scope = scene.scope;
    const bool waits = lists_waiters(scene.at);
    if (scope.whole_name) {
        return "nobody holds the lock " + detail::quoted(scope.beginning, 256) +
               (waits ? " or waits for it" : "") + where;
    }
    return std::string("nobody holds a lock") + (waits ? " or waits for one" : "") +
           (scope.beginning.empty()
                ? ""
                : " whose name begins with " + detail::quoted(scope.beginning, 256)) +
           where;
}

}  // namespace trinco::program
