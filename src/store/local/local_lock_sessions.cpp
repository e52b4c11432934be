// Sessions of a local file: leases, how they are renewed and how they end.
#include <algorithm>
#include <charconv>
#include <limits>

#include "store/local/local_queues.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t max_label = 4'096;
constexpr std::int64_t max_sessions = 10'000;

std::int64_t microseconds_of(std::chrono::seconds s) noexcept {
    return std::chrono::microseconds(s).count();
}

}  // namespace

std::string local_queues::lease_of(std::int64_t session) const {
    return std::to_string(in_.epoch()) + "-" + std::to_string(session);
}

std::int64_t local_queues::session_of(std::string_view lease) const {
    const std::string life = std::to_string(in_.epoch()) + "-";
    if (!lease.starts_with(life)) return 0;
    lease.remove_prefix(life.size());
    std::int64_t session = 0;
    const auto* const end = lease.data() + lease.size();
    const auto read = std::from_chars(lease.data(), end, session);
    return read.ec == std::errc() && read.ptr == end && session > 0 ? session : 0;
}

bool local_queues::is_current(std::int64_t session) {
    query q(in_.db().prepared("SELECT 1 FROM sessions WHERE id = ? AND ends > ?"), session, now_);
    return q.next();
}

local_answer<lease> local_queues::open(std::chrono::seconds ttl, std::string_view label) {
    if (ttl < traits().ttl_min || ttl > traits().ttl_max || label.size() > max_label) {
        return {errc::invalid, {}};
    }
    sweep();
    if (!has_room_for_sessions()) return {errc::busy, {}};
    std::int64_t session = 0;
    owned_descriptor held;
    // In a file that was restored, or made anew, numbers come again that somebody still holds.
    while (held.get() < 0) {
        if (session != 0) {
            query(in_.db().prepared("DELETE FROM sessions WHERE id = ?"), session).run();
        }
        query(in_.db().prepared("INSERT INTO sessions(label, ttl, ends, socket, pid, pid_space) "
                                "VALUES(?, ?, ?, ?, ?, ?)"),
              label, std::int64_t{ttl.count()}, now_ + microseconds_of(ttl), self_.socket,
              self_.pid, self_.pid_space)
            .run();
        session = in_.db().last_row();
        held = lives_->hold(session);
    }
    if (sweep_at_ > now_ + microseconds_of(ttl)) sweep_not_before(now_ + microseconds_of(ttl));
    fresh_ = session;
    // Held from before anybody can see the row; given up again if the commit fails.
    after_.committed.emplace_back([lives = lives_, session, held = std::move(held)]() mutable {
        lives->keep(session, std::move(held));
    });
    return {{}, {lease_of(session), ttl}};
}

// The dead are in nobody's way and mostly not looked for, until there are so many of them.
bool local_queues::has_room_for_sessions() {
    const auto count = [this] {
        query q(in_.db().prepared("SELECT count(*) FROM sessions"));
        return q.next() ? q.number(0) : 0;
    };
    const auto there = count();
    is_alone_ = there == 0;
    if (there < max_sessions) return true;
    std::set<std::int64_t> all;
    {
        query q(in_.db().prepared("SELECT id FROM sessions"));
        while (q.next()) all.insert(q.number(0));
    }
    reap(all);
    return count() < max_sessions;
}

local_answer<local_queues::renewal> local_queues::renew(std::string_view lease) {
    const auto session = session_of(lease);
    renewal made;
    if (!read_renewal(session, made)) {
        sweep();
        if (!read_renewal(session, made)) return {errc::lost, {}};
    }
    query(in_.db().prepared("UPDATE sessions SET ends = ? WHERE id = ?"),
          now_ + microseconds_of(made.ttl), session)
        .run();
    after_.look_early = true;
    return {{}, std::move(made)};
}

// In one statement: renewals are what waiting processes cost. False when the session is not there,
// or when it is time to sweep first.
bool local_queues::read_renewal(std::int64_t session, renewal& to) {
    to = {};
    query q(in_.db().prepared("SELECT s.ttl, c.claim, (SELECT sweep_at FROM machine) FROM "
                              "sessions s LEFT JOIN claims c ON c.session = s.id WHERE s.id = ?"),
            session);
    bool found = false;
    while (q.next()) {
        if (q.number(2) <= now_) return false;
        to.ttl = std::chrono::seconds(q.number(0));
        if (!q.is_null(1)) to.owned.push_back({static_cast<std::uint64_t>(q.number(1))});
        found = true;
    }
    std::sort(to.owned.begin(), to.owned.end());
    return found;
}

ended_claims local_queues::revoke(std::string_view lease) {
    sweep();
    names queues;
    const auto claims = remove_session(session_of(lease), queues);
    settle(std::move(queues));
    after_.ended.emplace(lease);
    return claims;
}

local_answer<std::vector<claim_id>> local_queues::owned(std::string_view lease) {
    const auto session = session_of(lease);
    if (!is_current(session)) return {errc::lost, {}};
    local_answer<std::vector<claim_id>> out;
    query q(in_.db().prepared("SELECT claim FROM claims WHERE session = ?"), session);
    while (q.next()) out.value.push_back({static_cast<std::uint64_t>(q.number(0))});
    std::sort(out.value.begin(), out.value.end());
    return out;
}

void local_queues::read_machine() {
    query q(in_.db().prepared("SELECT sweep_at, granted FROM machine"));
    const bool is_there = q.next();
    sweep_at_ = is_there ? q.number(0) : std::numeric_limits<std::int64_t>::max();
    granted_ = is_there ? static_cast<std::uint64_t>(q.number(1)) : 0;
}

void local_queues::sweep() {
    read_machine();
    if (sweep_at_ <= now_) sweep_all();
}

void local_queues::sweep_not_before(std::int64_t at) {
    query(in_.db().prepared("UPDATE machine SET sweep_at = ?"), at).run();
    sweep_at_ = at;
}

void local_queues::sweep_all() {
    std::vector<std::int64_t> over;
    auto next = std::numeric_limits<std::int64_t>::max();
    {
        query q(in_.db().prepared("SELECT id, ends FROM sessions"));
        while (q.next()) {
            if (q.number(1) <= now_) {
                over.push_back(q.number(0));
            } else {
                next = std::min(next, q.number(1));
            }
        }
    }
    sweep_not_before(next);
    if (over.empty()) return;
    names queues;
    for (const auto session : over) remove_session(session, queues);
    settle(std::move(queues));
}

// Who asks for it has seen somebody that has run out, whatever `sweep_at` says: a process of the
// older layout, which still runs, opens sessions without it.
void local_queues::reap(const std::set<std::int64_t>& sessions) {
    sweep_all();
    names queues;
    for (const auto session : sessions) {
        if (!lives_->is_alive(session)) remove_session(session, queues);
    }
    settle(std::move(queues));
}

void local_queues::end_all_of(const std::string& socket) {
    std::vector<std::int64_t> all;
    {
        query q(in_.db().prepared("SELECT id FROM sessions WHERE socket = ?"), socket);
        while (q.next()) all.push_back(q.number(0));
    }
    names queues;
    for (const auto session : all) remove_session(session, queues);
    settle(std::move(queues));
    query(in_.db().prepared("DELETE FROM observers WHERE socket = ?"), socket).run();
}

// All its entries go before anybody is granted: nothing is granted to a lease that has ended.
std::size_t local_queues::remove_session(std::int64_t session, names& queues) {
    ring_session(session);
    std::vector<std::int64_t> claims;
    {
        query q(in_.db().prepared("SELECT id FROM claims WHERE session = ?"), session);
        while (q.next()) claims.push_back(q.number(0));
    }
    for (const auto claim : claims) delete_claim(claim, queues);
    query(in_.db().prepared("DELETE FROM sessions WHERE id = ?"), session).run();
    after_.committed.emplace_back([lives = lives_, session] { lives->drop(session); });
    return claims.size();
}

}  // namespace trinco::detail
