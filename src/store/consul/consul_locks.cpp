#include "store/consul/consul_locks.hpp"

#include "store/consul/consul_calls.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t max_text = 4'096;  // of labels and infos

}  // namespace

std::chrono::milliseconds consul::wall_time() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
}

consul_locks::consul_locks(loop& on, std::unique_ptr<consul::rpc> link,
                           consul_locks_settings settings)
    : known_(std::make_shared<consul::claims>(on, std::move(link), std::move(settings))) {}

consul_locks::~consul_locks() {
    known_->close();
}

const lock_traits& consul_locks::traits() const {
    static const lock_traits all{.permits = true,
                                 .values = true,
                                 .guarded_writes = true,
                                 .lists_waiters = false,
                                 .ttl_min = shortest_ttl,
                                 .parts_max = parts_max};
    return all;
}

template <class T>
op consul_locks::refuse(std::error_code error, completion<T> done) {
    return known_->on().at(known_->on().now(),
                           [error, done = std::move(done)]() mutable { done(error, T{}); });
}

op consul_locks::open(std::chrono::seconds ttl, std::string_view label, deadline by,
                      completion<lease> done) {
    if (ttl < traits().ttl_min || ttl > traits().ttl_max || label.size() > max_text) {
        return refuse(errc::invalid, std::move(done));
    }
    if (known_->link() == nullptr) return refuse(errc::unavailable, std::move(done));
    consul::session_request ask;
    ask.name = label;
    ask.ttl = ttl;
    ask.lock_delay = known_->settings().lock_delay;
    ask.erases = true;
    return known_->link()->create(
        ask, by,
        [known = known_, ttl, label = std::string(label), done = std::move(done)](
            std::error_code error, std::string id) mutable {
            if (error) return done(error, {});
            auto& on = known->lease(id);
            on.granted = ttl;
            on.label = std::move(label);
            done({}, {std::move(id), ttl});
        });
}

op consul_locks::renew(std::string_view lease, deadline by, completion<std::chrono::seconds> done) {
    return consul::renew_lease(known_, lease, by, std::move(done));
}

op consul_locks::revoke(std::string_view lease, deadline by, completion<ended_claims> done) {
    return consul::revoke_lease(known_, lease, by,
                                [done = std::move(done)](std::error_code error, int) mutable {
                                    done(error, std::nullopt);
                                });
}

op consul_locks::owned(std::string_view lease, deadline by,
                       completion<std::vector<claim_id>> done) {
    return consul::claims_on(known_, lease, by, std::move(done));
}

op consul_locks::enter(claim what, deadline by, completion<place> done) {
    if (const auto bad = consul::check_claim(known_, what)) return refuse(bad, std::move(done));
    // Of a lease that was not opened here there is no account.
    if (known_->find(what.lease) == nullptr) return refuse(errc::lost, std::move(done));
    return consul::enter_claim(known_, what, by, std::move(done));
}

op consul_locks::await(std::string_view lease, claim_id id, unique_function<void(place)>,
                       completion<grant> done) {
    return consul::wait_for_grant(known_, lease, id, std::move(done));
}

op consul_locks::on_gone(std::string_view lease, claim_id id,
                         unique_function<void(std::error_code)> gone) {
    return consul::watch_own(known_, lease, id, std::move(gone));
}

op consul_locks::verify(std::string_view lease, claim_id id, deadline by, completion<grant> done) {
    return consul::verify_claim(known_, lease, id, by, std::move(done));
}

// All or none: whoever waits has no name yet.
op consul_locks::turns(std::string_view lease, claim_id id, deadline by,
                       completion<std::vector<bool>> done) {
    const auto* c = known_->find(lease, id);
    const auto parts = c == nullptr ? 0 : c->parts.size();
    return consul::verify_claim(
        known_, lease, id, by,
        [parts, done = std::move(done)](std::error_code error, const grant&) mutable {
            if (error && error != errc::conflict) return done(error, {});
            done({}, std::vector<bool>(parts, !error));
        });
}

op consul_locks::publish(std::string_view lease, claim_id id, std::string_view info, deadline by,
                         completion<int> done) {
    if (info.size() > max_text) return refuse(errc::invalid, std::move(done));
    return consul::rewrite_claim(known_, lease, id, info, by, std::move(done));
}

op consul_locks::leave(std::string_view lease, claim_id id, deadline by, completion<int> done) {
    return consul::leave_claim(known_, lease, id, by, std::move(done));
}

op consul_locks::write(std::string_view lease, std::optional<claim_id> guard,
                       std::span<const change> changes, std::chrono::seconds keep, deadline by,
                       completion<std::uint64_t> done) {
    return consul::write_records(known_, lease, guard, changes, keep, by, std::move(done));
}

op consul_locks::read(std::string_view key, deadline by, completion<std::optional<record>> done) {
    return consul::read_record(known_, key, by, std::move(done));
}

op consul_locks::scan(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                      completion<records> done) {
    return consul::scan_records(known_, prefix, from, rows, by, std::move(done));
}

op consul_locks::list(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                      completion<entries> done) {
    return consul::list_entries(known_, prefix, from, rows, by, std::move(done));
}

op consul_locks::evict(const entry& seen, bool now, std::string_view who, std::string_view why,
                       deadline by, completion<int> done) {
    return consul::evict_entry(known_, seen, now, {std::string(who), std::string(why)}, by,
                               std::move(done));
}

op consul_locks::observe(std::string_view name, unique_function<void(std::optional<entry>)> seen) {
    return consul::observe_name(known_, name, std::move(seen));
}

std::string consul_locks::trouble(const std::error_code& told) const {
    if (auto said = known_->said(told); !said.empty()) return said;
    const auto* link = known_->link();
    return link == nullptr ? std::string() : link->why(told);
}

bool consul_locks::is_refused() const noexcept {
    const auto* link = known_->link();
    return link != nullptr && link->is_refused();
}

op consul_locks::stop(deadline by, completion<int> done) {
    auto* link = known_->link();
    if (link == nullptr) return refuse({}, std::move(done));
    known_->stop();
    return link->stop(by, std::move(done));
}

}  // namespace trinco::detail
