#include "apps/trinco/records/record_list.hpp"

#include <chrono>
#include <set>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "store/lock_store.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t records_of_a_page = 100;
constexpr std::size_t locks_of_a_page = 500;
constexpr auto patience = 5s;

// The names of locks, of those that begin so, which somebody holds exclusively: runners. Of one
// whole name it must be known.
std::variant<std::set<std::string>, problem> held_locks(const store& at,
                                                        const std::string& beginning,
                                                        bool whole_name) {
    std::set<std::string> held;
    std::string from;
    do {
        const auto page = ask_locks<detail::entries>(
            at, patience, [&](detail::lock_store& locks, detail::deadline by, auto done) {
                return locks.list(beginning, from, locks_of_a_page, by, std::move(done));
            });
        if (page.error) return store_problem(at, "list the locks of keys", page.error);
        if (whole_name && page.value.name_is_hidden) {
            return store_problem(at, "look at the lock of the key", errc::denied);
        }
        for (const auto& e : page.value.rows) {
            if (e.holds && e.kind == detail::claim_kind::exclusive) held.insert(e.name);
        }
        from = page.value.next;
    } while (!from.empty());
    return held;
}

std::optional<problem> check(const record_scope& scope) {
    std::string key = scope.prefix + scope.beginning;
    if (!scope.whole_key) {
        if (key.ends_with('/')) key.pop_back();
        if (key.empty()) return std::nullopt;
    }
    if (const auto bad = detail::check_once_key(key)) return problem{exit_usage, *bad};
    return std::nullopt;
}

void add_page(std::vector<record_row>& to, const detail::records& page, const record_scope& scope) {
    const auto before = detail::once_keys.size() + scope.prefix.size();
    for (const auto& r : page.rows) {
        std::string key = r.key.substr(before);
        if (scope.whole_key && key != scope.beginning) continue;
        to.push_back({std::move(key), r.revision, detail::decode_once(r.value)});
    }
}

// One that nobody seemed to run: by its lock as it is now, and the record behind that. So what
// begins or ends while this is read is not taken for interrupted.
std::optional<problem> look_again(const records_scene& in, record_row& row) {
    const auto key = in.scope.prefix + row.key;
    auto locks = held_locks(in.at, detail::once_lock_of(key), true);
    if (auto* const bad = std::get_if<problem>(&locks)) return std::move(*bad);
    row.owner_lives = std::get<std::set<std::string>>(locks).contains(detail::once_lock_of(key));
    if (row.owner_lives) return std::nullopt;
    const auto found = ask_locks<std::optional<detail::record>>(
        in.at, patience, [&](detail::lock_store& store, detail::deadline by, auto done) {
            return store.read(detail::once_key_of(key), by, std::move(done));
        });
    if (found.error) return store_problem(in.at, "read a record", found.error);
    if (!found.value || found.value->revision == row.revision) return std::nullopt;
    row.revision = found.value->revision;
    row.is = detail::decode_once(found.value->value);
    // Changed just now: whoever did that may run it.
    row.owner_lives = row.is && row.is->state == detail::once_record::state_t::running;
    return std::nullopt;
}

}  // namespace

record_scope records_of(std::string word) {
    const bool is_prefix = word.empty() || word.ends_with('*') || word.ends_with('/');
    if (word.ends_with('*')) word.pop_back();
    return {.beginning = std::move(word), .whole_key = !is_prefix};
}

std::variant<records_scene, problem> open_records(const store_flags& where, record_scope scope) {
    auto loaded = settings_for(where, {needs::locks});
    if (auto* const bad = std::get_if<problem>(&loaded)) return std::move(*bad);
    const auto& with = std::get<settings>(loaded);
    scope.prefix = with.prefix;
    if (auto bad = check(scope)) return *std::move(bad);
    auto opened = open_store(with, needs::locks);
    if (auto* const bad = std::get_if<problem>(&opened)) return std::move(*bad);
    return records_scene{std::move(std::get<store>(opened)), std::move(scope)};
}

// The locks are read first: who is seen to hold one then, and has finished by the time of the
// record, is shown with what it wrote. The other way round a run that ended in between would be
// shown as interrupted.
std::variant<std::vector<record_row>, problem> list_records(const records_scene& in) {
    const std::string beginning = in.scope.prefix + in.scope.beginning;
    auto locks = held_locks(in.at, detail::once_lock_of(beginning), in.scope.whole_key);
    if (auto* const bad = std::get_if<problem>(&locks)) return std::move(*bad);
    const auto& held = std::get<std::set<std::string>>(locks);
    std::vector<record_row> rows;
    std::string from;
    do {
        const auto page = ask_locks<detail::records>(
            in.at, patience, [&](detail::lock_store& store, detail::deadline by, auto done) {
                return store.scan(detail::once_key_of(beginning), from, records_of_a_page, by,
                                  std::move(done));
            });
        if (page.error) return store_problem(in.at, "list records", page.error);
        add_page(rows, page.value, in.scope);
        from = page.value.next;
        if (in.scope.whole_key && !rows.empty()) break;
    } while (!from.empty());
    for (auto& row : rows) {
        row.owner_lives = held.contains(detail::once_lock_of(in.scope.prefix + row.key));
        const bool runs = row.is && row.is->state == detail::once_record::state_t::running;
        if (!runs || row.owner_lives) continue;
        if (auto bad = look_again(in, row)) return *std::move(bad);
    }
    return rows;
}

}  // namespace trinco::program
