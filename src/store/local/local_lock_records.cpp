// What a local file keeps beside its queues: records, listings, and what watchers ask.
#include <algorithm>
#include <charconv>

#include "store/local/local_queues.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t max_rows = 1'000;
constexpr std::size_t max_changes = 64;
constexpr std::size_t max_key = 512;
constexpr std::size_t max_value = 128 * 1'024;
constexpr std::int64_t max_keys = 100'000;
constexpr std::int64_t holders_watched = 64;

std::chrono::milliseconds ms(std::int64_t microseconds) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::microseconds(std::max<std::int64_t>(microseconds, 0)));
}

}  // namespace

std::int64_t local_queues::revision_of(std::string_view key) {
    query q(in_.db().prepared("SELECT revision FROM keys WHERE key = ?"), key);
    return q.next() ? q.number(0) : 0;
}

local_answer<std::uint64_t> local_queues::write(std::string_view lease,
                                                std::optional<claim_id> guard,
                                                std::span<const change> changes,
                                                std::chrono::seconds keep) {
    sweep();
    if (guard) {
        const auto c = find(lease, *guard);
        if (!c || c->missing > 0) return {errc::lost, {}};
    }
    const bool sound = keep >= std::chrono::seconds(0) && keep <= traits().ttl_max * 366 &&
                       !changes.empty() && changes.size() <= max_changes &&
                       std::all_of(changes.begin(), changes.end(), [](const change& c) {
                           return !c.key.empty() && c.key.size() <= max_key &&
                                  (!c.value || c.value->size() <= max_value);
                       });
    if (!sound) return {errc::invalid, {}};
    query(in_.db().prepared("DELETE FROM keys WHERE expires > 0 AND expires <= ?"), now_).run();
    std::int64_t added = 0;
    for (const change& c : changes) {
        const std::int64_t revision = revision_of(c.key);
        if (c.value && revision == 0) ++added;
        if (c.if_revision != any_revision &&
            c.if_revision != static_cast<std::uint64_t>(revision)) {
            return {errc::conflict, {}};
        }
    }
    if (added > 0) {
        query q(in_.db().prepared("SELECT count(*) FROM keys"));
        if (q.next() && q.number(0) + added > max_keys) return {errc::busy, {}};
    }
    std::int64_t revision = 0;
    query(in_.db().prepared("UPDATE machine SET revision = revision + 1")).run();
    {
        query q(in_.db().prepared("SELECT revision FROM machine"));
        if (q.next()) revision = q.number(0);
    }
    const std::int64_t expires =
        keep.count() == 0 ? 0 : now_ + std::chrono::microseconds(keep).count();
    for (const change& c : changes) {
        if (c.value) {
            query(in_.db().prepared("INSERT OR REPLACE INTO keys(key, value, revision, expires) "
                                    "VALUES(?, ?, ?, ?)"),
                  c.key, query::blob{*c.value}, revision, expires)
                .run();
        } else {
            query(in_.db().prepared("DELETE FROM keys WHERE key = ?"), c.key).run();
        }
    }
    return {{}, static_cast<std::uint64_t>(revision)};
}

std::optional<record> local_queues::read(std::string_view key) {
    query q(in_.db().prepared("SELECT value, revision FROM keys WHERE key = ? AND (expires = 0 OR "
                              "expires > ?)"),
            key, now_);
    if (!q.next()) return std::nullopt;
    return record{q.text(0), static_cast<std::uint64_t>(q.number(1))};
}

// A page ends with its last key.
records local_queues::scan(std::string_view prefix, std::string_view from, std::size_t rows) {
    records out;
    rows = std::min(rows, max_rows);
    if (rows == 0) return out;
    query q(in_.db().prepared("SELECT key, value, revision FROM keys WHERE key > ?1 AND "
                              "substr(key, 1, length(?2)) = ?2 AND key >= ?2 AND (expires = 0 OR "
                              "expires > ?3) ORDER BY key LIMIT ?4"),
            from, prefix, now_, static_cast<std::int64_t>(rows) + 1);
    while (q.next()) {
        if (out.rows.size() == rows) {
            out.next = out.rows.back().key;
            break;
        }
        out.rows.push_back({{q.text(1), static_cast<std::uint64_t>(q.number(2))}, q.text(0)});
    }
    return out;
}

local_answer<std::vector<bool>> local_queues::turns(std::string_view lease, claim_id id) {
    const auto c = find(lease, id);
    if (!c) return {errc::lost, {}};
    local_answer<std::vector<bool>> out;
    query q(in_.db().prepared("SELECT turn FROM entries WHERE claim = ? ORDER BY part"), c->id);
    while (q.next()) out.value.push_back(q.number(0) != 0);
    return out;
}

// The columns: name, session, claim, row, label, info, kind, missing, token, since, ends, n,
// granted, evicted, evictor, reason.
entry local_queues::entry_from(query& row) const {
    entry e;
    e.name = row.text(0);
    e.info = row.bytes(5).empty() ? row.text(4) : row.text(5);
    e.handle = lease_of(row.number(1)) + "/" +
               std::to_string(static_cast<std::uint64_t>(row.number(2))) + "/" +
               std::to_string(row.number(3));
    e.kind = static_cast<claim_kind>(row.number(6));
    e.holds = row.number(7) == 0;
    e.token = static_cast<std::uint64_t>(row.number(8));
    e.since = ms(now_ - row.number(9));
    e.left = ms(row.number(10) - now_);
    e.n = static_cast<std::uint32_t>(row.number(11));
    if (e.holds) e.held = ms(now_ - row.number(12));
    if (row.number(13) != 0) e.evicted = eviction{row.text(14), row.text(15)};
    return e;
}

// A page ends with the name and the row of its last entry, between which a name has no blank.
local_answer<entries> local_queues::list(std::string_view prefix, std::string_view from,
                                         std::size_t rows) {
    const auto blank = from.find(' ');
    std::int64_t after = 0;
    if (!from.empty()) {
        const auto* const end = from.data() + from.size();
        if (blank == std::string_view::npos ||
            std::from_chars(from.data() + blank + 1, end, after).ptr != end) {
            return {errc::invalid, {}};
        }
    }
    rows = std::min(rows, max_rows);
    const std::string_view last = from.substr(0, blank);
    local_answer<entries> out;
    if (rows == 0) return out;
    query q(in_.db().prepared(
                "SELECT e.name, s.id, c.claim, c.id, s.label, c.info, e.kind, c.missing, e.token, "
                "c.since, s.ends, e.n, c.granted, c.evicted, c.evictor, c.reason FROM entries e "
                "JOIN claims c ON c.id = e.claim JOIN sessions s ON s.id = c.session WHERE "
                "e.name >= ?1 AND e.name >= ?2 AND (e.name > ?2 OR "
                "e.claim > ?3) AND s.ends > ?4 ORDER BY e.name, e.claim"),
            prefix, last, after, now_);
    while (q.next()) {
        if (!q.bytes(0).starts_with(prefix)) break;
        if (!lives_->is_alive(q.number(1))) continue;
        if (out.value.rows.size() == rows) return out;
        out.value.rows.push_back(entry_from(q));
        out.value.next = q.text(0) + " " + std::to_string(q.number(3));
    }
    out.value.next.clear();
    return out;
}

std::optional<std::pair<std::int64_t, entry>> local_queues::holder_of(std::string_view name) {
    query q(in_.db().prepared(
                "SELECT e.name, s.id, c.claim, c.id, s.label, c.info, e.kind, c.missing, e.token, "
                "c.since, s.ends, e.n, c.granted, c.evicted, c.evictor, c.reason FROM entries e "
                "JOIN claims c ON c.id = e.claim JOIN sessions s ON s.id = c.session WHERE "
                "e.name = ? AND s.ends > ? ORDER BY e.claim"),
            name, now_);
    while (q.next()) {
        if (!lives_->is_alive(q.number(1))) continue;
        if (q.number(7) != 0) break;
        return std::pair(q.number(3), entry_from(q));
    }
    return std::nullopt;
}

std::optional<std::int64_t> local_queues::end_of(std::int64_t session) {
    query q(in_.db().prepared("SELECT ends FROM sessions WHERE id = ?"), session);
    return q.next() ? std::optional(q.number(0)) : std::nullopt;
}

void local_queues::drop_ended() {
    for (const auto session : lives_->own()) {
        query q(in_.db().prepared("SELECT 1 FROM sessions WHERE id = ?"), session);
        if (!q.next()) lives_->drop(session);
    }
}

void local_queues::add_observer(std::string_view name) {
    query(in_.db().prepared("INSERT OR IGNORE INTO observers(name, socket) VALUES(?, ?)"), name,
          self_.socket)
        .run();
    after_.needs_mail = true;
    after_.look = true;
}

std::vector<local_queues::party> local_queues::ahead_of(std::int64_t claim) {
    struct waits {
        std::string name;
        bool permit;
    };
    std::vector<waits> names_ahead;
    {
        query q(in_.db().prepared("SELECT name, kind FROM entries WHERE claim = ? AND turn = 0"),
                claim);
        while (q.next()) {
            names_ahead.push_back(
                {q.text(0), static_cast<claim_kind>(q.number(1)) == claim_kind::permit});
        }
    }
    std::vector<party> all;
    // Whether the last one has its turn.
    const auto take = [&](query& q) {
        const auto before = all.size();
        while (q.next()) {
            all.push_back({q.number(0), q.number(1), q.number(2), q.bytes(3) == self_.pid_space,
                           q.number(4) != 0});
        }
        return all.size() > before && all.back().has_turn;
    };
    for (const auto& one : names_ahead) {
        {
            query q(in_.db().prepared(
                        "SELECT s.id, s.ends, s.pid, s.pid_space, e.turn FROM entries e JOIN "
                        "claims c ON c.id = e.claim JOIN sessions s ON s.id = c.session WHERE "
                        "e.name = ? AND e.claim < ? ORDER BY e.claim DESC LIMIT 1"),
                    one.name, claim);
            if (!take(q) || !one.permit) continue;
        }
        query q(in_.db().prepared(
                    "SELECT s.id, s.ends, s.pid, s.pid_space, e.turn FROM entries e JOIN claims c "
                    "ON c.id = e.claim JOIN sessions s ON s.id = c.session WHERE e.name = ? AND "
                    "e.turn = 1 LIMIT ?"),
                one.name, holders_watched);
        take(q);
    }
    return all;
}

}  // namespace trinco::detail
