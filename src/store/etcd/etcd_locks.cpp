#include "store/etcd/etcd_locks.hpp"

#include <algorithm>

#include "store/etcd/etcd_calls.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;
using etcd::lease_number;

namespace {

constexpr std::size_t max_text = 4'096;  // of labels and infos

}  // namespace

std::chrono::milliseconds wall_time() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
}

etcd_locks::etcd_locks(loop& on, std::unique_ptr<etcd::rpc> link, etcd_locks_settings settings)
    : known_(std::make_shared<etcd::claims>(on, std::move(link), std::move(settings))) {}

etcd_locks::~etcd_locks() {
    known_->close();
}

const lock_traits& etcd_locks::traits() const {
    static const lock_traits all{.fifo = true,
                                 .shared = true,
                                 .permits = true,
                                 .values = true,
                                 .guarded_writes = true,
                                 .ttl_min = 2s,  // of a server with its default election timeout
                                 .parts_max = parts_max};
    return all;
}

template <class T>
op etcd_locks::refuse(std::error_code error, completion<T> done) {
    return known_->on().at(known_->on().now(),
                           [error, done = std::move(done)]() mutable { done(error, T{}); });
}

op etcd_locks::open(std::chrono::seconds ttl, std::string_view label, deadline by,
                    completion<lease> done) {
    if (ttl < traits().ttl_min || ttl > traits().ttl_max || label.size() > max_text) {
        return refuse(errc::invalid, std::move(done));
    }
    if (known_->link() == nullptr) return refuse(errc::unavailable, std::move(done));
    return known_->link()->grant(
        ttl, by,
        [known = known_, label = std::string(label), done = std::move(done)](
            std::error_code error, const etcd::lease_reply& reply) mutable {
            if (error) return done(error, {});
            const auto id = etcd::lease_text(reply.id);
            auto& on = known->lease(id);
            on.granted = reply.ttl;
            on.label = std::move(label);
            done({}, {id, reply.ttl});
        });
}

op etcd_locks::renew(std::string_view lease, deadline by, completion<std::chrono::seconds> done) {
    const auto number = lease_number(lease);
    if (!number) return refuse(errc::lost, std::move(done));
    if (known_->link() == nullptr) return refuse(errc::unavailable, std::move(done));
    return known_->link()->keep_alive(
        *number, by,
        [known = known_, lease = std::string(lease), done = std::move(done)](
            std::error_code error, std::chrono::seconds granted) mutable {
            if (error == errc::lost) known->forget(lease);
            done(error, granted);
        });
}

op etcd_locks::revoke(std::string_view lease, deadline by, completion<ended_claims> done) {
    const auto number = lease_number(lease);
    if (!number) return refuse({}, std::move(done));
    if (known_->link() == nullptr) return refuse(errc::unavailable, std::move(done));
    return known_->link()->revoke(*number, by,
                                  [known = known_, lease = std::string(lease),
                                   done = std::move(done)](std::error_code error, int) mutable {
                                      known->forget(lease);  // whatever is left ends by itself
                                      done(error, std::nullopt);
                                  });
}

op etcd_locks::owned(std::string_view lease, deadline by, completion<std::vector<claim_id>> done) {
    return etcd::claims_on(known_, lease, by,
                           [known = known_, lease = std::string(lease), done = std::move(done)](
                               std::error_code error, std::vector<claim_id> listed) mutable {
                               for (auto& one : listed) one = known->slots.owner(lease, one);
                               std::sort(listed.begin(), listed.end());
                               done(error, std::move(listed));
                           });
}

op etcd_locks::enter(claim what, deadline by, completion<place> done) {
    if (const auto bad = etcd::check_claim(what)) return refuse(bad, std::move(done));
    if (!lease_number(what.lease)) return refuse(errc::lost, std::move(done));
    for (auto& p : what.parts) p.name.insert(0, known_->settings().prefix);
    const auto id = what.id;
    const auto slot = known_->slots.enter(what.lease, id);
    if (const auto& told = known_->settings().numbered) told(what.lease, id, slot);
    what.id = slot;
    auto lease = what.lease;
    return etcd::enter_claim(known_, std::move(what), by,
                             [known = known_, lease = std::move(lease), id, slot,
                              done = std::move(done)](std::error_code error, place at) mutable {
                                 using outcome = etcd::etcd_slots::outcome;
                                 const bool unknown =
                                     error == errc::lost ||
                                     (error && kind_of(error) == error_kind::unknown);
                                 known->slots.answered(lease, id,
                                                       unknown ? outcome::unknown
                                                       : error ? outcome::absent
                                                               : outcome::there);
                                 if (error && !unknown) known->forget(lease, slot);
                                 done(error, std::move(at));
                             });
}

op etcd_locks::await(std::string_view lease, claim_id id, unique_function<void(place)> moved,
                     completion<grant> done) {
    const auto slot = known_->slots.find(lease, id);
    if (!slot) return refuse(errc::lost, std::move(done));
    return etcd::wait_for_turn(known_, lease, *slot, std::move(moved), std::move(done));
}

op etcd_locks::on_gone(std::string_view lease, claim_id id,
                       unique_function<void(std::error_code)> gone) {
    const auto slot = known_->slots.find(lease, id);
    if (!slot) {
        return refuse<int>(
            errc::lost, [gone = std::move(gone)](std::error_code why, int) mutable { gone(why); });
    }
    return etcd::watch_own(known_, lease, *slot, std::move(gone));
}

op etcd_locks::verify(std::string_view lease, claim_id id, deadline by, completion<grant> done) {
    const auto slot = known_->slots.find(lease, id);
    if (!slot) return refuse(errc::lost, std::move(done));
    return etcd::look_at(
        known_, lease, *slot, by,
        [known = known_, lease = std::string(lease), id = *slot, done = std::move(done)](
            std::error_code error, const etcd::claim_view& v) mutable {
            auto* c = known->find(lease, id);
            // By now its number may be that of another claim.
            const bool gone = c == nullptr || (v.created() != 0 && c->created != v.created());
            if (!error && gone) error = errc::lost;
            if (!error && !v.granted()) error = errc::conflict;
            if (error) return done(error, {});
            done({}, {c->tokens});
        });
}

op etcd_locks::turns(std::string_view lease, claim_id id, deadline by,
                     completion<std::vector<bool>> done) {
    const auto slot = known_->slots.find(lease, id);
    if (!slot) return refuse(errc::lost, std::move(done));
    return etcd::look_at(
        known_, lease, *slot, by,
        [done = std::move(done)](std::error_code error, const etcd::claim_view& v) mutable {
            std::vector<bool> out;
            for (const auto& p : v.parts) out.push_back(p.has_turn());
            done(error, std::move(out));
        });
}

op etcd_locks::publish(std::string_view lease, claim_id id, std::string_view info, deadline by,
                       completion<int> done) {
    if (info.size() > max_text) return refuse(errc::invalid, std::move(done));
    const auto slot = known_->slots.find(lease, id);
    if (!slot) return refuse(errc::lost, std::move(done));
    return etcd::rewrite_claim(
        known_, lease, *slot,
        [info = std::string(info)](etcd::owner_note& note) { note.info = info; }, by,
        std::move(done));
}

op etcd_locks::leave(std::string_view lease, claim_id id, deadline by, completion<int> done) {
    const auto slot = known_->slots.find(lease, id);
    if (!slot) return refuse({}, std::move(done));
    return etcd::leave_claim(known_, lease, *slot, by,
                             [known = known_, lease = std::string(lease), id,
                              done = std::move(done)](std::error_code error, int) mutable {
                                 if (!error) known->slots.left(lease, id);
                                 done(error, 0);
                             });
}

op etcd_locks::write(std::string_view lease, std::optional<claim_id> guard,
                     std::span<const change> changes, std::chrono::seconds keep, deadline by,
                     completion<std::uint64_t> done) {
    return etcd::write_records(known_, lease, guard, changes, keep, by, std::move(done));
}

op etcd_locks::read(std::string_view key, deadline by, completion<std::optional<record>> done) {
    return etcd::read_record(known_, key, by, std::move(done));
}

op etcd_locks::scan(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                    completion<records> done) {
    return etcd::scan_records(known_, prefix, from, rows, by, std::move(done));
}

op etcd_locks::list(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                    completion<entries> done) {
    return etcd::list_entries(known_, prefix, from, rows, by, std::move(done));
}

op etcd_locks::evict(const entry& seen, bool now, std::string_view who, std::string_view why,
                     deadline by, completion<int> done) {
    return etcd::evict_entry(known_, seen, now, {std::string(who), std::string(why)}, by,
                             std::move(done));
}

op etcd_locks::observe(std::string_view name, unique_function<void(std::optional<entry>)> seen) {
    return etcd::observe_name(known_, known_->settings().prefix + std::string(name),
                              std::move(seen));
}

std::string etcd_locks::trouble(const std::error_code& told) const {
    const auto* link = known_->link();
    return link == nullptr ? std::string() : link->why(told);
}

bool etcd_locks::is_refused() const noexcept {
    const auto* link = known_->link();
    return link != nullptr && link->is_refused();
}

op etcd_locks::stop(deadline by, completion<int> done) {
    auto* link = known_->link();
    if (link == nullptr) return refuse({}, std::move(done));
    known_->stop();
    return link->stop(by, std::move(done));
}

}  // namespace trinco::detail
