#include "store/local/local_breaker_rows.hpp"

#include <algorithm>

#include "core/breaker/record_codec.hpp"
#include "core/names.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::int64_t max_breakers = 100'000;
constexpr int swept_per_exchange = 2;

constexpr const char* find_row =
    "SELECT id, touched, changed, flushed, expires, record FROM breakers "
    "WHERE space = ? AND name = ?";

}  // namespace

local_breaker_rows::row local_breaker_rows::load(local_file& in, std::string_view breaker,
                                                 store_time now) {
    row r;
    query q(in.db().prepared(find_row), space_, breaker);
    if (!q.next()) return r;
    r.id = q.number(0);
    r.touched = q.number(1);
    r.changed = q.number(2);
    r.flushed = q.number(3);
    if (q.number(4) <= now.count()) return r;
    auto record = decode(q.bytes(5));
    r.damaged = !record;
    if (record) r.record = std::move(*record);
    return r;
}

bool local_breaker_rows::has_room(local_file& in, const row& r) {
    if (r.id != 0) return true;
    query q(in.db().prepared("SELECT count(*) FROM breakers"));
    return q.next() && q.number(0) < max_breakers;
}

void local_breaker_rows::keep(local_file& in, std::string_view breaker, row& r, store_time now) {
    const std::string bytes = encode(r.record);
    const store_time until = now + time_to_live(r.record, now);
    const std::int64_t expires = until.count();
    if (r.id != 0) {
        query(in.db().prepared("UPDATE breakers SET record = ?, expires = ? WHERE id = ?"),
              query::blob{bytes}, expires, r.id)
            .run();
        return;
    }
    query(in.db().prepared("INSERT INTO breakers(space, name, record, expires) "
                           "VALUES(?, ?, ?, ?)"),
          space_, breaker, query::blob{bytes}, expires)
        .run();
    r.id = in.db().last_row();
}

void local_breaker_rows::publish(local_file& in, local_round& after, row& r, const effects& did) {
    if (!did.changed && !did.flush) return;
    query(in.db().prepared("UPDATE machine SET changes = changes + 1")).run();
    {
        query q(in.db().prepared("SELECT changes FROM machine"));
        if (q.next()) r.touched = q.number(0);
    }
    if (did.changed) r.changed = r.touched;
    if (did.flush) r.flushed = r.touched;
    after.ring_peers = true;
    query(
        in.db().prepared("UPDATE breakers SET touched = ?, changed = ?, flushed = ? WHERE id = ?"),
        r.touched, r.changed, r.flushed, r.id)
        .run();
}

void local_breaker_rows::sweep(local_file& in, store_time now) {
    std::int64_t last = 0;
    std::int64_t expired[swept_per_exchange];
    int found = 0;
    {
        query q(in.db().prepared("SELECT id, expires FROM breakers WHERE id > ? ORDER BY id "
                                 "LIMIT 2"),
                swept_);
        while (q.next()) {
            last = q.number(0);
            if (q.number(1) <= now.count()) expired[found++] = last;
        }
    }
    swept_ = last;  // 0 after the last row: from the beginning
    for (int i = 0; i < found; ++i) {
        query(in.db().prepared("DELETE FROM breakers WHERE id = ?"), expired[i]).run();
    }
}

verdict local_breaker_rows::exchange(local_file& in, local_round& after,
                                     const breaker_identity& who, const news& n) {
    verdict v;
    if (check_breaker_name(n.breaker)) {
        v.error = errc::invalid;
        return v;
    }
    const auto began = boot_clock::now();
    const store_time now = in.now();
    row r = load(in, n.breaker, now);
    if (r.damaged) {
        v.error = errc::unavailable;
        return v;
    }
    if (n.slices.size() > max_slices || !has_room(in, r)) {
        v.error = errc::busy;
        return v;
    }
    effects did;
    v = apply(r.record, who, n, now, did);
    if (v.error) return v;
    keep(in, n.breaker, r, now);
    publish(in, after, r, did);
    sweep(in, now);
    v.cost = std::chrono::duration_cast<std::chrono::microseconds>(boot_clock::now() - began);
    return v;
}

std::error_code local_breaker_rows::look(local_file& in, const look_request& q, glance& seen) {
    const auto began = boot_clock::now();
    const store_time now = in.now();
    const row r = load(in, q.breaker, now);
    if (r.damaged) return errc::unavailable;
    seen = detail::look(r.record, q, now);
    seen.cost = std::chrono::duration_cast<std::chrono::microseconds>(boot_clock::now() - began);
    return {};
}

std::error_code local_breaker_rows::probe(local_file& in, local_round& after,
                                          const breaker_identity& who, const probe_request& p,
                                          probe_reply& reply) {
    const store_time now = in.now();
    row r = load(in, p.breaker, now);
    if (r.damaged) return errc::unavailable;
    effects did;
    reply = apply(r.record, who, p, now, did);
    // A plain refusal prolongs nothing and makes nothing, but a record that is there remembers who
    // asked.
    const bool news_for_all = reply.granted || did.changed;
    if (news_for_all && has_room(in, r)) {
        keep(in, p.breaker, r, now);
        publish(in, after, r, did);
    } else if (r.id != 0) {
        const std::string bytes = encode(r.record);
        query(in.db().prepared("UPDATE breakers SET record = ? WHERE id = ? AND expires > ?"),
              query::blob{bytes}, r.id, std::int64_t{now.count()})
            .run();
    }
    return {};
}

std::error_code local_breaker_rows::control(local_file& in, local_round& after,
                                            const control_request& c, view& reply) {
    const store_time now = in.now();
    row r = load(in, c.breaker, now);
    if (r.damaged && c.verb != control_verb::forget) return errc::unavailable;
    if (!has_room(in, r)) return errc::busy;
    effects did;
    std::error_code error;
    reply = apply(r.record, c, now, did, error);
    const bool there = r.id != 0 && !r.damaged;
    if (error && !(there && did.changed)) return error;
    keep(in, c.breaker, r, now);
    publish(in, after, r, did);
    return error;
}

page local_breaker_rows::inspect(local_file& in, std::string_view prefix, std::string_view from,
                                 std::size_t most) {
    page p;
    const store_time now = in.now();
    const bool begins = from < prefix;
    query q(in.db().prepared("SELECT name, record FROM breakers WHERE space = ? AND name >= ? "
                             "AND name > ? AND expires > ? ORDER BY name"),
            space_, prefix, begins ? std::string_view() : from, std::int64_t{now.count()});
    while (q.next()) {
        const std::string name = q.text(0);
        if (!name.starts_with(prefix)) break;
        const auto record = decode(q.bytes(1));
        if (!record) continue;
        if (p.rows.size() == most) {
            p.next = p.rows.back().breaker;
            break;
        }
        p.rows.push_back(report_of(*record, name, now));
    }
    return p;
}

void local_breaker_rows::see(local_file& in) {
    query q(in.db().prepared("SELECT changes FROM machine"));
    if (q.next()) seen_ = q.number(0);
}

std::vector<notice> local_breaker_rows::changes(local_file& in, std::int64_t& seen) {
    std::vector<notice> all;
    const store_time now = in.now();
    query q(in.db().prepared("SELECT name, record, changed, flushed, touched, space FROM breakers "
                             "WHERE touched > ? ORDER BY touched"),
            seen);
    std::int64_t last = seen;
    while (q.next()) {
        last = q.number(4);
        if (q.bytes(5) != space_) continue;
        const auto record = decode(q.bytes(1));
        if (!record) continue;
        notice n{notice::kind_t::changed, q.text(0), view_of(*record, now)};
        if (q.number(2) > seen) all.push_back(n);
        n.kind = notice::kind_t::flush;
        if (q.number(3) > seen) all.push_back(n);
    }
    seen = last;
    return all;
}

}  // namespace trinco::detail
