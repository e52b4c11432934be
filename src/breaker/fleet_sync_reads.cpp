// Reads for strict mode, and an operator's hand.
#include <algorithm>
#include <utility>

#include "breaker/fleet_sync_impl.hpp"
#include "core/mutant.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

namespace {

constexpr boot_clock::duration control_again = 50ms;

// Errors by which nothing is known of the store but that it did not take the request.
bool may_pass(std::error_code ec) noexcept {
    return ec == errc::unavailable || ec == errc::busy || kind_of(ec) == error_kind::unknown;
}

// Else a view that is known already says nothing new when it is seen again.
bool has_running_time(const view& v) noexcept {
    return v.remaining.count() != 0 || v.over_remaining.count() != 0;
}

}  // namespace

op fleet_sync::impl::refresh(const member_ptr& m, completion<int> done) {
    auto reader = std::make_shared<completion<int>>(std::move(done));
    m->read_next.push_back(reader);
    if (m->reading.empty()) start_read(m);
    return op([reader] { reader->reset(); });
}

// Whether a look would not do, whatever it showed.
bool fleet_sync::member::must_exchange() const noexcept {
    return own_stamp == 0 || store_lacks_options || degraded || verdict_era != known.fleet.era;
}

void fleet_sync::impl::start_read(const member_ptr& m) {
    m->reading = std::exchange(m->read_next, {});
    const auto by = on.now() + m->options.store_timeout;
    if (m->must_exchange()) {
        read_by_exchange(m, by);
    } else {
        read_by_look(m, by);
    }
}

void fleet_sync::impl::read_by_look(const member_ptr& m, deadline by) {
    const auto now = on.now();
    ++meter.looks;
    m->read = store.look({m->name, m->current_view(now)}, by,
                         [this, m, now, by](std::error_code ec, const glance& seen) {
                             looked(m, now, by, ec, seen);
                         });
}

void fleet_sync::impl::looked(const member_ptr& m, time_point sent, deadline by, std::error_code ec,
                              const glance& seen) {
    if (ec) {
        ++meter.looks_failed;
        failed(m.get(), asked_to::read, sent, by, ec);
        plan();
        finish_read(m, ec);
        return;
    }
    const auto now = on.now();
    meter.look_round_trips.record(now - sent);
    meter.cost_of_look(seen.cost);
    m->refusal.clear();
    answered(asked_to::read, now);
    const bool newer = !seen.exchange_first && learn(*m, seen.fleet, sent);
    if (seen.exchange_first || m->must_exchange()) {
        // The exchange may stay without an answer. That the fleet has closed waits for it: it tells
        // whether this voter was set aside.
        const bool closes = m->known.fleet.state == breaker_state::closed;
        if (newer && !closes && !TRINCO_MUTANT("sync_keeps_a_look_to_itself")) tell(*m);
        read_by_exchange(m, by);
        return;
    }
    if (newer || has_running_time(seen.fleet)) tell(*m);
    finish_read(m, {});
}

void fleet_sync::impl::read_by_exchange(const member_ptr& m, deadline by) {
    const auto now = on.now();
    news n;
    n.breaker = m->name;
    n.mine = m->current_view(now);
    n.own_stamp = m->own_stamp;
    n.options = m->own_stamp == 0        ? m->own_text
                : m->store_lacks_options ? m->governing_text
                                         : std::string{};
    ++meter.strict_exchanges;
    const news one[] = {std::move(n)};
    m->read = store.exchange(
        one, by, [this, m, now, by](std::error_code ec, const std::vector<verdict>& verdicts) {
            if (!ec && verdicts.size() != 1) ec = errc::invalid;
            if (ec) {
                meter.failed(ec);
                unanswered(asked_to::write, now, by, ec);
                plan();
            } else {
                trips.answered(on.now() - now);
                meter.exchange_round_trips.record(on.now() - now);
                answered(asked_to::write, on.now());
                ec = verdicts.front().error;
                meter.cost_of_exchange(verdicts.front().cost);
                m->refusal = ec;
                if (ec) meter.trouble(trouble());
                if (!ec) take_verdict(*m, verdicts.front(), now);
                if (m->owner != nullptr) plan(*m);  // what it asks for may be due sooner
            }
            finish_read(m, ec);
        });
}

// Those who have asked meanwhile get a read of their own, which begins now.
void fleet_sync::impl::finish_read(const member_ptr& m, std::error_code ec) {
    const auto readers = std::exchange(m->reading, {});
    if (m->owner != nullptr && !m->read_next.empty()) start_read(m);
    for (const auto& r : readers) {
        if (m->owner == nullptr) return;
        // Taken out first: the completion may destroy its op.
        if (auto f = std::exchange(*r, nullptr)) f(ec, 0);
    }
}

op fleet_sync::impl::control(control_request request, deadline by, completion<view> done) {
    while (request.id == 0) request.id = on.random();
    if (request.who.empty()) request.who = who.instance;
    const auto id = request.id;
    auto shared = std::make_shared<completion<view>>(std::move(done));
    controls.insert_or_assign(id, control_call{std::move(request), by, shared, false, {}});
    try_control(id);
    return op([self = weak_from_this(), id] {
        if (const auto alive = self.lock()) alive->controls.erase(id);
    });
}

void fleet_sync::impl::try_control(std::uint64_t id) {
    auto& call = controls.at(id);
    const auto now = on.now();
    const auto try_by =
        std::min(call.by, now + std::max<boot_clock::duration>(store_timeout(), 100ms));
    call.attempt =
        store.control(call.request, try_by, [this, id, now](std::error_code ec, const view& v) {
            auto& mine = controls.at(id);
            if (ec) meter.failed(ec);
            mine.in_doubt = mine.in_doubt || kind_of(ec) == error_kind::unknown;
            if (may_pass(ec) && on.now() + control_again < mine.by) {
                mine.attempt = on.at(on.now() + control_again, [this, id] { try_control(id); });
                return;
            }
            // What may have happened once stays so, whatever a repetition is answered.
            if (mine.in_doubt && kind_of(ec) == error_kind::not_applied) ec = errc::unknown_outcome;
            const auto done = mine.done;
            const auto attempt = std::move(mine.attempt);
            const auto found = members.find(mine.request.breaker);
            const auto m = found == members.end() ? nullptr : found->second;
            controls.erase(id);
            if (!ec && m && learn(*m, v, now)) tell(*m);
            if (*done) (*done)(ec, ec ? view{} : v);
        });
}

}  // namespace trinco::detail
