#include "store/local/local_queues.hpp"

#include <algorithm>
#include <charconv>

#include "core/names.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t max_info = 4'096;
constexpr std::uint32_t max_permits = 1'000'000;
constexpr std::int64_t max_claims = 100'000;

// Claims are numbered by their callers over all 64 bits; the file's numbers are signed.
std::int64_t stored(claim_id id) noexcept {
    return static_cast<std::int64_t>(id.n);
}

}  // namespace

const lock_traits& local_queues::traits() noexcept {
    static const lock_traits all{
        .fifo = true, .shared = true, .permits = true, .values = true, .guarded_writes = true};
    return all;
}

void local_queues::delete_claim(std::int64_t claim, names& queues) {
    names left;
    {
        query q(in_.db().prepared("SELECT name FROM entries WHERE claim = ?"), claim);
        while (q.next()) left.insert(q.text(0));
    }
    after_.claims.insert(claim);
    query(in_.db().prepared("DELETE FROM entries WHERE claim = ?"), claim).run();
    query(in_.db().prepared("DELETE FROM claims WHERE id = ?"), claim).run();
    for (const auto& name : left) ring_who_waits_behind(name, claim);
    queues.merge(left);
}

void local_queues::ring_session(std::int64_t session) {
    after_.look = true;
    // Of this process, which looks.
    if (session == fresh_ || lives_->descriptor_of(session) >= 0) return;
    query q(in_.db().prepared("SELECT socket FROM sessions WHERE id = ?"), session);
    while (q.next()) after_.rings.insert(q.text(0));
}

// He has somebody else in front of him now, after whom he has to look.
void local_queues::ring_who_waits_behind(std::string_view name, std::int64_t claim) {
    after_.look = true;
    if (is_empty(name)) return;
    std::int64_t next = 0;
    {
        query q(in_.db().prepared("SELECT claim FROM entries WHERE name = ? AND claim > ? "
                                  "AND turn = 0 ORDER BY claim LIMIT 1"),
                name, claim);
        if (!q.next()) return;
        next = q.number(0);
    }
    query q(in_.db().prepared("SELECT s.socket FROM claims c JOIN sessions s ON s.id = c.session "
                              "WHERE c.id = ?"),
            next);
    while (q.next()) after_.rings.insert(q.text(0));
    after_.claims.insert(next);
}

void local_queues::ring_observers(std::string_view name) {
    query q(in_.db().prepared("SELECT socket FROM observers WHERE name = ?"), name);
    while (q.next()) after_.rings.insert(q.text(0));
}

void local_queues::settle(names queues) {
    if (queues.empty()) return;
    after_.look = true;
    names told;
    while (!queues.empty()) {
        const std::string name = *queues.begin();
        queues.erase(queues.begin());
        told.insert(name);
        if (!advance(name, told)) continue;
        // Somebody in front had died: his entries go, and then it is looked at anew.
        std::set<std::int64_t> dead;
        {
            query q(in_.db().prepared("SELECT DISTINCT c.session FROM entries e JOIN claims c ON "
                                      "c.id = e.claim WHERE e.name = ?"),
                    name);
            while (q.next()) {
                if (!lives_->is_alive(q.number(0))) dead.insert(q.number(0));
            }
        }
        for (const auto session : dead) remove_session(session, queues);
        queues.insert(name);
    }
    for (const auto& name : told) ring_observers(name);
}

// Gives the turn to those who have it now. True, and nothing is given, when one of those in front
// is dead.
bool local_queues::advance(const std::string& name, names& granted) {
    if (is_empty(name)) return false;
    struct next {
        std::int64_t claim;
        std::int64_t session;
        std::int64_t missing;
    };
    std::vector<next> turns;
    bool others_wait = false;
    {
        query q(in_.db().prepared("SELECT e.claim, c.session, e.kind, e.n, e.turn, c.missing FROM "
                                  "entries e JOIN claims c ON c.id = e.claim WHERE e.name = ? "
                                  "ORDER BY e.claim"),
                name);
        turn_rule rule;
        while (!rule.closed() && q.next()) {
            if (!lives_->is_alive(q.number(1))) return true;
            const seat asks{static_cast<claim_kind>(q.number(2)),
                            static_cast<std::uint32_t>(q.number(3))};
            if (q.number(4) == 0 && rule.has_turn(asks)) {
                turns.push_back({q.number(0), q.number(1), q.number(5) - 1});
            } else {
                others_wait = !turns.empty();
            }
            rule.pass(asks);
        }
        others_wait = others_wait || (rule.closed() && q.next());
    }
    for (const auto& one : turns) {
        query(in_.db().prepared("UPDATE entries SET turn = 1 WHERE name = ? AND claim = ?"), name,
              one.claim)
            .run();
        query(in_.db().prepared("UPDATE claims SET missing = ?, granted = ? WHERE id = ?"),
              one.missing, now_, one.claim)
            .run();
        if (one.missing == 0) give(one.claim, one.session, granted);
    }
    if (others_wait && !turns.empty()) ring_next(name, turns.back().claim, turns.back().session);
    return false;
}

// Who is first in line now looks after the holder more closely when no pidfd tells him of its end.
void local_queues::ring_next(std::string_view name, std::int64_t claim, std::int64_t session) {
    query q(in_.db().prepared("SELECT s.socket FROM entries e JOIN claims c ON c.id = e.claim JOIN "
                              "sessions s ON s.id = c.session WHERE e.name = ? AND e.claim > ? AND "
                              "s.pid_space <> (SELECT pid_space FROM sessions WHERE id = ?) ORDER "
                              "BY e.claim LIMIT 1"),
            name, claim, session);
    while (q.next()) after_.rings.insert(q.text(0));
}

// A token of its own for each grant: a waiter that is granted by another's release must stand
// above whatever was granted since it entered.
std::uint64_t local_queues::next_token() {
    if (!granted_) read_machine();
    query(in_.db().prepared("UPDATE machine SET granted = ?"), ++*granted_).run();
    return (in_.epoch() << 32U) + *granted_;
}

void local_queues::give(std::int64_t claim, std::int64_t session, names& granted) {
    after_.claims.insert(claim);
    query(in_.db().prepared("UPDATE entries SET token = ? WHERE claim = ? AND kind = 0"),
          next_token(), claim)
        .run();
    {
        query q(in_.db().prepared("SELECT name FROM entries WHERE claim = ?"), claim);
        while (q.next()) granted.insert(q.text(0));
    }
    ring_session(session);
}

std::error_code local_queues::check(const claim& what) {
    const auto& t = traits();
    if (what.parts.empty() || what.parts.size() > t.parts_max || what.info.size() > max_info) {
        return errc::invalid;
    }
    const part* before = nullptr;
    for (const auto& p : what.parts) {
        const bool counts = p.kind == claim_kind::permit;
        const bool sound = counts ? p.n >= 1 && p.n <= max_permits : p.n == 0;
        if (!sound || check_lock_name(p.name) || (before != nullptr && before->name >= p.name)) {
            return errc::invalid;
        }
        before = &p;
    }
    if (!has_room_for_claims()) return errc::busy;
    for (const auto& p : what.parts) {
        if (p.kind != claim_kind::permit) continue;
        query q(in_.db().prepared("SELECT 1 FROM entries WHERE name = ? AND kind = 2 AND n <> ? "
                                  "LIMIT 1"),
                p.name, p.n);
        if (q.next()) return errc::limit_mismatch;
    }
    return {};
}

bool local_queues::has_room_for_claims() {
    if (is_alone_) return true;  // a claim is of a session
    {
        // Never less than their number, and mostly enough to know.
        query q(
            in_.db().prepared("SELECT (SELECT max(id) FROM claims) - "
                              "(SELECT min(id) FROM claims)"));
        if (q.next() && q.number(0) < max_claims - 1) return true;
    }
    query q(in_.db().prepared("SELECT count(*) FROM claims"));
    return q.next() && q.number(0) < max_claims;
}

bool local_queues::is_empty(std::string_view name) {
    query q(in_.db().prepared("SELECT 1 FROM entries WHERE name = ? LIMIT 1"), name);
    return !q.next();
}

bool local_queues::fits_only_if_free(const claim& what) {
    return std::all_of(what.parts.begin(), what.parts.end(), [&](const part& p) {
        query q(in_.db().prepared("SELECT kind, n FROM entries WHERE name = ? ORDER BY claim"),
                p.name);
        turn_rule rule;
        while (!rule.closed() && q.next()) {
            rule.pass(
                {static_cast<claim_kind>(q.number(0)), static_cast<std::uint32_t>(q.number(1))});
        }
        return !rule.closed() && rule.has_turn({p.kind, p.n});
    });
}

local_answer<place> local_queues::enter(const claim& what) {
    const auto session = session_of(what.lease);
    // Nothing hangs on a session that was opened a moment ago, and it was swept then.
    if (session == 0 || session != fresh_) {
        sweep();
        if (!is_current(session)) return {errc::lost, {}};
        if (const auto known = find(what.lease, what.id)) return {{}, place_of(known->id)};
    }
    const bool is_free = std::all_of(what.parts.begin(), what.parts.end(),
                                     [this](const part& p) { return is_empty(p.name); });
    if (is_free && lives_->is_alive(session)) {
        const auto bad = check(what);
        if (!bad) insert_granted(what, session);
        return {bad, {}};
    }
    // Holders that died without anybody waiting for them.
    std::set<std::int64_t> dead;
    for (const auto& p : what.parts) {
        query q(in_.db().prepared("SELECT c.session FROM entries e JOIN claims c ON "
                                  "c.id = e.claim WHERE e.name = ? AND e.turn = 1"),
                p.name);
        while (q.next()) {
            if (!lives_->is_alive(q.number(0))) dead.insert(q.number(0));
        }
    }
    if (!dead.empty()) reap(dead);
    if (const auto bad = check(what)) return {bad, {}};
    if (what.only_if_free && !fits_only_if_free(what)) return {errc::conflict, {}};
    insert(what, session);
    const auto made = find(what.lease, what.id);
    if (!made) return {errc::lost, {}};  // the session is dead: its descriptor was closed
    return {{}, place_of(made->id)};
}

void local_queues::insert(const claim& what, std::int64_t session) {
    after_.needs_mail = true;
    query(in_.db().prepared("INSERT INTO claims(session, claim, info, since, missing) "
                            "VALUES(?, ?, ?, ?, ?)"),
          session, stored(what.id), what.info, now_, static_cast<std::int64_t>(what.parts.size()))
        .run();
    const std::int64_t id = in_.db().last_row();
    names queues;
    for (std::size_t i = 0; i < what.parts.size(); ++i) {
        const part& p = what.parts[i];
        query(in_.db().prepared("INSERT INTO entries(name, claim, part, kind, n) "
                                "VALUES(?, ?, ?, ?, ?)"),
              p.name, id, static_cast<std::int64_t>(i), static_cast<int>(p.kind), p.n)
            .run();
        queues.insert(p.name);
    }
    settle(std::move(queues));
}

// As insert and all that follows from it where nobody else is there: most locks are free.
void local_queues::insert_granted(const claim& what, std::int64_t session) {
    const std::uint64_t token = next_token();
    query(in_.db().prepared("INSERT INTO claims(session, claim, info, since, missing, granted) "
                            "VALUES(?, ?, ?, ?, 0, ?)"),
          session, stored(what.id), what.info, now_, now_)
        .run();
    const std::int64_t id = in_.db().last_row();
    given_.emplace();
    for (std::size_t i = 0; i < what.parts.size(); ++i) {
        const part& p = what.parts[i];
        given_->tokens.push_back(p.kind == claim_kind::exclusive ? token : 0);
        query(in_.db().prepared("INSERT INTO entries(name, claim, part, kind, n, turn, token) "
                                "VALUES(?, ?, ?, ?, ?, 1, ?)"),
              p.name, id, static_cast<std::int64_t>(i), static_cast<int>(p.kind), p.n,
              given_->tokens.back())
            .run();
        ring_observers(p.name);
    }
    after_.claims.insert(id);
    ring_session(session);
}

std::optional<local_queues::claim_row> local_queues::find(std::string_view lease, claim_id id) {
    query q(in_.db().prepared("SELECT c.id, c.missing, c.evicted, s.ends, s.id FROM claims c JOIN "
                              "sessions s ON s.id = c.session WHERE c.session = ? AND c.claim = ? "
                              "AND s.ends > ?"),
            session_of(lease), stored(id), now_);
    if (!q.next()) return std::nullopt;
    return claim_row{q.number(0), q.number(4), q.number(1), q.number(2) != 0, q.number(3)};
}

grant local_queues::grant_of(std::int64_t claim) {
    grant g;
    query q(in_.db().prepared("SELECT token FROM entries WHERE claim = ? ORDER BY part"), claim);
    while (q.next()) g.tokens.push_back(static_cast<std::uint64_t>(q.number(0)));
    return g;
}

place local_queues::place_of(std::int64_t claim) {
    query q(in_.db().prepared("SELECT count(*) FROM entries WHERE claim < ?1 AND name = (SELECT "
                              "name FROM entries WHERE claim = ?1 ORDER BY part LIMIT 1)"),
            claim);
    if (!q.next()) return {};
    return {static_cast<std::uint32_t>(q.number(0))};
}

local_answer<grant> local_queues::verify(std::string_view lease, claim_id id) {
    const auto c = find(lease, id);
    if (!c) return {errc::lost, {}};
    if (c->missing > 0) return {errc::conflict, {}};
    return {{}, grant_of(c->id)};
}

std::error_code local_queues::publish(std::string_view lease, claim_id id, std::string_view info) {
    if (info.size() > max_info) return errc::invalid;
    const auto c = find(lease, id);
    if (!c) return errc::lost;
    query(in_.db().prepared("UPDATE claims SET info = ? WHERE id = ?"), info, c->id).run();
    after_.look = true;
    query q(in_.db().prepared("SELECT o.socket FROM entries e JOIN observers o ON o.name = e.name "
                              "WHERE e.claim = ?"),
            c->id);
    while (q.next()) after_.rings.insert(q.text(0));
    return {};
}

void local_queues::leave(std::string_view lease, claim_id id) {
    sweep();
    const auto c = find(lease, id);
    if (!c) return;
    names queues;
    delete_claim(c->id, queues);
    settle(std::move(queues));
}

std::error_code local_queues::evict(const entry& seen, bool now, const eviction& by) {
    if (!by.is_sound()) return errc::invalid;
    sweep();
    // The lease, the claim's number, the row's.
    const std::string_view handle = seen.handle;
    const auto first = handle.find('/');
    const auto second = handle.find('/', first == std::string_view::npos ? first : first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return errc::invalid;
    std::uint64_t id = 0;
    const auto* const end = handle.data() + second;
    if (std::from_chars(handle.data() + first + 1, end, id).ptr != end) return errc::invalid;
    const auto c = find(handle.substr(0, first), {id});
    if (!c) return errc::lost;
    if (std::to_string(c->id) != handle.substr(second + 1)) return errc::conflict;
    ring_session(c->session);
    after_.claims.insert(c->id);
    if (!now) {
        query(in_.db().prepared("UPDATE claims SET evicted = 1, evictor = ?, reason = ? "
                                "WHERE id = ?"),
              by.who, by.why, c->id)
            .run();
        return {};
    }
    names queues;
    delete_claim(c->id, queues);
    settle(std::move(queues));
    return {};
}

}  // namespace trinco::detail
