#include "apps/trinco/locks/lock_list.hpp"

#include <chrono>

#include "apps/trinco/exit_codes.hpp"
#include "core/names.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t rows_of_a_page = 500;
constexpr std::chrono::seconds page_limit{5};

}  // namespace

bool lists_waiters(const store& at) {
    return detail::store_access::state(at)->locks()->traits().lists_waiters;
}

std::optional<problem> check_scope(const lock_scope& scope) {
    std::string name = scope.prefix + scope.beginning;
    if (!scope.whole_name) {
        if (name.ends_with('/')) name.pop_back();
        if (name.empty()) return std::nullopt;
    }
    if (const auto bad = detail::check_lock_name(name)) return problem{exit_usage, *bad};
    return std::nullopt;
}

void add_entries(std::vector<lock_row>& to, const std::vector<detail::entry>& page,
                 const lock_scope& scope) {
    for (const auto& e : page) {
        if (!e.name.starts_with(scope.prefix)) continue;
        std::string name = e.name.substr(scope.prefix.size());
        if (scope.whole_name && name != scope.beginning) continue;
        if (to.empty() || to.back().name != name) to.push_back({std::move(name), {}, {}});
        (e.holds ? to.back().holders : to.back().waiters).push_back(e);
    }
}

std::variant<std::vector<lock_row>, problem> list_locks(const store& at, const lock_scope& scope,
                                                        const given_up& unwanted) {
    std::vector<lock_row> rows;
    const std::string beginning = scope.prefix + scope.beginning;
    std::string from;
    do {
        const auto page = ask_locks<detail::entries>(
            at, page_limit,
            [&](detail::lock_store& locks, detail::deadline by, auto done) {
                return locks.list(beginning, from, rows_of_a_page, by, std::move(done));
            },
            unwanted);
        if (page.error) return store_problem(at, "list locks", page.error);
        if (scope.whole_name && page.value.name_is_hidden) {
            return store_problem(at, "look at the lock", errc::denied);
        }
        add_entries(rows, page.value.rows, scope);
        from = page.value.next;
        // Names come in order: behind the one that is meant there is nothing more of it.
        const bool beyond = scope.whole_name && !page.value.rows.empty() &&
                            page.value.rows.back().name != beginning;
        if (beyond) break;
    } while (!from.empty());
    for (auto& row : rows) row.lists_waiters = lists_waiters(at);
    return rows;
}

}  // namespace trinco::program
