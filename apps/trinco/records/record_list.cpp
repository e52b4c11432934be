#include "apps/trinco/records/record_list.hpp"

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t records_of_a_page = 100;
constexpr std::size_t locks_of_a_page = 500;
constexpr std::size_t locks_of_a_look = 16;  // at one name, whose holder comes first
constexpr milliseconds patience = 5s;

using holders = std::map<std::string, detail::entry>;

// Who holds the locks whose names begin so, exclusively: runners. Of one whole name it must be
// known.
std::variant<holders, problem> holders_of(const store& at, const std::string& beginning,
                                          bool whole_name, milliseconds each) {
    const auto rows = whole_name ? locks_of_a_look : locks_of_a_page;
    holders held;
    std::string from;
    do {
        const auto page = ask_locks<detail::entries>(
            at, each, [&](detail::lock_store& locks, detail::deadline by, auto done) {
                return locks.list(beginning, from, rows, by, std::move(done));
            });
        if (page.error) return store_problem(at, "list the locks of keys", page.error);
        if (whole_name && page.value.name_is_hidden) {
            return store_problem(at, "look at the lock of the key", errc::denied);
        }
        for (const auto& e : page.value.rows) {
            if (e.holds && e.kind == detail::claim_kind::exclusive) held.emplace(e.name, e);
        }
        from = page.value.next;
    } while (!from.empty() && !(whole_name && held.contains(beginning)));
    return held;
}

std::optional<problem> check(const record_scope& scope, const settings& with) {
    std::string key = scope.prefix + scope.beginning;
    if (scope.whole_key) {
        if (const auto bad = detail::check_once_key(key)) return problem{exit_usage, *bad};
        return check_key_at(with, key);
    }
    const auto begins = detail::once_lock_of(key);
    if (key.ends_with('/')) key.pop_back();
    if (key.empty() && begins == detail::once_lock_of("")) return std::nullopt;
    if (!key.empty()) {
        if (const auto bad = detail::check_once_key(key)) return problem{exit_usage, *bad};
    }
    const auto bad = check_lock_name_at(with.locks_url, begins, true);
    if (!bad) return std::nullopt;
    return problem{exit_usage, "what begins so cannot be listed in the store " +
                                   detail::shown_url(with.locks_url) + ": " + *bad};
}

void add_page(std::vector<record_row>& to, const detail::records& page, const record_scope& scope) {
    const auto before = detail::once_keys.size() + scope.prefix.size();
    for (const auto& r : page.rows) {
        to.push_back({.key = r.key.substr(before),
                      .revision = r.revision,
                      .is = detail::decode_once(r.value)});
    }
}

void take_holder(record_row& row, holders& held, const std::string& key) {
    const auto at = held.find(detail::once_lock_of(key));
    row.owner_lives = at != held.end();
    if (row.owner_lives) row.holder = std::move(at->second);
}

std::optional<problem> read_record(const store& at, const std::string& key, milliseconds each,
                                   record_row& row) {
    const auto found = ask_locks<std::optional<detail::record>>(
        at, each, [&](detail::lock_store& locks, detail::deadline by, auto done) {
            return locks.read(detail::once_key_of(key), by, std::move(done));
        });
    if (found.error) return store_problem(at, "read a record", found.error);
    row.revision = found.value ? found.value->revision : 0;
    row.is = found.value ? detail::decode_once(found.value->value) : std::nullopt;
    return std::nullopt;
}

bool runs(const record_row& row) noexcept {
    return row.is && row.is->state == detail::once_record::state_t::running;
}

// One that nobody seemed to run: by its lock as it is now, and the record behind that. So what
// begins or ends while this is read is not taken for interrupted.
std::optional<problem> look_again(const store& at, const std::string& key, milliseconds each,
                                  record_row& row) {
    auto locks = holders_of(at, detail::once_lock_of(key), true, each);
    if (auto* const bad = std::get_if<problem>(&locks)) return std::move(*bad);
    take_holder(row, std::get<holders>(locks), key);
    if (row.owner_lives) return std::nullopt;
    const auto before = row.revision;
    if (auto bad = read_record(at, key, each, row)) return bad;
    // Changed just now: whoever did that may run it.
    row.owner_lives = row.revision != before && runs(row);
    return std::nullopt;
}

}  // namespace

bool is_run_by_its_owner(const record_row& row) {
    if (!runs(row) || !row.owner_lives) return false;
    return !row.holder || owner_name(*row.holder) == row.is->owner;
}

bool is_interrupted(const record_row& row) noexcept {
    return runs(row) && !row.owner_lives;
}

record_scope records_of(std::string word) {
    const bool is_prefix = word.empty() || word.ends_with('*') || word.ends_with('/');
    if (word.ends_with('*')) word.pop_back();
    return {.beginning = std::move(word), .whole_key = !is_prefix};
}

std::optional<problem> check_key_at(const settings& with, const std::string& key) {
    const auto bad = check_lock_name_at(with.locks_url, detail::once_lock_of(key));
    if (!bad) return std::nullopt;
    return problem{exit_usage, "the key " + detail::quoted(key, 256) + " is none for the store " +
                                   detail::shown_url(with.locks_url) + ": " + *bad};
}

std::variant<records_scene, problem> open_records(const store_flags& where, record_scope scope) {
    auto loaded = settings_for(where, {needs::locks});
    if (auto* const bad = std::get_if<problem>(&loaded)) return std::move(*bad);
    const auto& with = std::get<settings>(loaded);
    scope.prefix = with.prefix;
    if (auto bad = check(scope, with)) return *std::move(bad);
    auto opened = open_store(with, needs::locks);
    if (auto* const bad = std::get_if<problem>(&opened)) return std::move(*bad);
    return records_scene{std::move(std::get<store>(opened)), std::move(scope)};
}

// The lock is read first, and so are locks below: who is seen to hold one then, and has finished by
// the time of the record, is shown with what it wrote. The other way round a run that ended in
// between would be shown as interrupted.
std::variant<record_row, problem> look_at_record(const store& at, const std::string& key,
                                                 milliseconds each) {
    auto locks = holders_of(at, detail::once_lock_of(key), true, each);
    if (auto* const bad = std::get_if<problem>(&locks)) return std::move(*bad);
    record_row row;
    row.key = key;
    take_holder(row, std::get<holders>(locks), key);
    if (auto bad = read_record(at, key, each, row)) return *std::move(bad);
    if (!runs(row) || row.owner_lives) return row;
    if (auto bad = look_again(at, key, each, row)) return *std::move(bad);
    return row;
}

std::variant<std::vector<record_row>, problem> list_records(const records_scene& in) {
    const std::string beginning = in.scope.prefix + in.scope.beginning;
    if (in.scope.whole_key) {
        auto looked = look_at_record(in.at, beginning, patience);
        if (auto* const bad = std::get_if<problem>(&looked)) return std::move(*bad);
        auto& row = std::get<record_row>(looked);
        if (row.revision == 0) return std::vector<record_row>();
        row.key = in.scope.beginning;
        return std::vector<record_row>{std::move(row)};
    }
    auto locks = holders_of(in.at, detail::once_lock_of(beginning), false, patience);
    if (auto* const bad = std::get_if<problem>(&locks)) return std::move(*bad);
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
    } while (!from.empty());
    for (auto& row : rows) {
        const auto key = in.scope.prefix + row.key;
        take_holder(row, std::get<holders>(locks), key);
        if (!runs(row) || row.owner_lives) continue;
        if (auto bad = look_again(in.at, key, patience, row)) return *std::move(bad);
    }
    std::erase_if(rows, [](const record_row& row) { return row.revision == 0; });
    return rows;
}

}  // namespace trinco::program
