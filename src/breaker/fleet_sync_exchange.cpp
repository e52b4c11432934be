// When to exchange, and what.
#include <algorithm>
#include <utility>

#include "breaker/fleet_sync_impl.hpp"
#include "core/mutant.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

namespace {

constexpr boot_clock::duration urgent_gap = 2ms;
// Of the places in an exchange, while urgent ones come faster than they can be sent.
constexpr std::size_t kept_for_others = max_news / 4;

}  // namespace

// One that may be sent now.
struct fleet_sync::impl::waiter {
    time_point since;
    const member_ptr* who;
};

// Those that have waited longest, so that none starves behind as many others as fit.
void fleet_sync::impl::keep_longest(std::vector<waiter>& all, std::size_t most) {
    const auto kept = std::min(most, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                      [](const waiter& a, const waiter& b) { return a.since < b.since; });
    all.resize(kept);
}

boot_clock::duration fleet_sync::impl::interval_of(const member& m) const noexcept {
    const boot_clock::duration base = m.known.rules.sync_interval;
    return trips.stretched(std::max(base, m.pace));
}

boot_clock::duration fleet_sync::impl::store_timeout() const noexcept {
    boot_clock::duration longest = 0ms;
    for (const auto& [name, m] : members) {
        longest = std::max<boot_clock::duration>(longest, m->options.store_timeout);
    }
    return longest > 0ms ? longest : breaker_options{}.store_timeout;
}

void fleet_sync::impl::force(member& m, time_point when) {
    m.forced = std::min(m.forced, when);
    plan(m);
}

void fleet_sync::impl::force_all(boot_clock::duration jitter) {
    const auto part = static_cast<boot_clock::rep>(
        on.random() % (static_cast<std::uint64_t>(jitter.count()) + 1));
    const auto when = on.now() + boot_clock::duration(part);
    for (const auto& [name, m] : members) m->forced = std::min(m->forced, when);
    plan();
}

// When this breaker should next be looked at; asking moves `due` past ticks that had nothing.
time_point fleet_sync::impl::next_time(member& m, time_point now) {
    if (m.in_flight) return never;
    auto t = std::min(m.forced, m.follow_up);
    // A degraded breaker collects nothing: only what is forced (its knocking) is sent.
    if (!m.degraded || m.unanswered) {
        const bool looks = m.urgent != never || m.due <= now;
        const bool last = stopping && m.has_last_news();
        const bool news = last || (looks && m.has_news());
        if (!news) m.urgent = never;
        if (m.urgent != never || last) return std::max(last_sent + urgent_gap, retry_at);
        if (m.due <= now && !news) {
            m.due = tick_at_or_after(now + 1ns, phase, m.known.rules.sync_interval);
        }
        t = std::min(t, m.due);
    }
    return t == never ? never : std::max(t, retry_at);
}

void fleet_sync::impl::plan() {
    if (exchange_in_flight) return;
    const auto now = on.now();
    auto next = never;
    for (const auto& [name, m] : members) {
        next = std::min(next, next_time(*m, now));
        if (next <= now) break;
    }
    plan_at(next);
}

// The others stand as they stood. One that need not be looked at as soon as planned is found to be
// so then.
void fleet_sync::impl::plan(member& m) {
    if (!exchange_in_flight) plan_at(std::min(planned, next_time(m, on.now())));
}

void fleet_sync::impl::plan_at(time_point next) {
    if (next == planned) return;
    planned = next;
    if (next == never) {
        timer.cancel();
        return;
    }
    timer = on.at(next, [this] {
        planned = never;
        send();
    });
}

std::vector<fleet_sync::impl::member_ptr> fleet_sync::impl::candidates(time_point now) {
    std::vector<waiter> urgent;
    std::vector<waiter> others;
    for (const auto& [name, m] : members) {
        if (next_time(*m, now) > now) continue;
        (m->urgent != never ? urgent : others).push_back({m->waits_since(), &m});
    }
    keep_longest(urgent, max_news - std::min(others.size(), kept_for_others));
    keep_longest(others, max_news - urgent.size());
    std::vector<member_ptr> chosen;
    chosen.reserve(urgent.size() + others.size());
    for (const auto* list : {&urgent, &others}) {
        for (const auto& w : *list) chosen.push_back(*w.who);
    }
    return chosen;
}

// A batch whose window has passed can be counted nowhere any more.
void fleet_sync::impl::drop_if_old(member& m, time_point now) {
    if (!m.unanswered || now - m.unanswered->first_sent <= m.known.rules.window) return;
    for (const auto& s : m.unanswered->sent.slices) meter.dropped(s.n);
    meter.dropped(m.unanswered->sent.stale);
    m.unanswered.reset();
}

news fleet_sync::impl::compose(member& m, time_point now, item& as) {
    drop_if_old(m, now);
    if (m.unanswered) {
        ++meter.batches_retried;
        if (TRINCO_MUTANT("sync_changes_a_sent_batch") && m.port->has_news()) {
            auto more = m.port->collect(m.unanswered->sent.mine.era);
            for (auto& s : more.slices) m.unanswered->sent.slices.push_back(s);
            m.unanswered->sent.stale += more.stale;
        }
        if (TRINCO_MUTANT("sync_renumbers_a_retry")) m.unanswered->sent.seq = ++last_seq;
        as.seq = m.unanswered->sent.seq;
        return m.unanswered->sent;
    }
    news n;
    n.breaker = m.name;
    n.mine = m.current_view(now);
    n.own_stamp = m.own_stamp;
    if (m.own_stamp == 0) {
        n.options = m.own_text;
    } else if (m.store_lacks_options) {
        n.options = m.governing_text;
    }
    if (m.degraded) return n;
    m.woken.fetch_and(static_cast<std::uint8_t>(~member::woken_urgently));
    m.news_found = false;
    auto harvest = m.port->collect(n.mine.era);
    if (harvest.empty()) return n;
    n.slices = std::move(harvest.slices);
    n.stale = harvest.stale;
    n.seq = ++last_seq;
    as.seq = n.seq;
    ++meter.batches;
    if (TRINCO_MUTANT("sync_sends_failures_alone")) {
        for (auto& s : n.slices) s.n.success = 0;
    }
    m.unanswered = member::batch{n, now};
    return n;
}

void fleet_sync::impl::send() {
    if (exchange_in_flight) return;
    const auto now = on.now();
    const auto chosen = candidates(now);
    if (chosen.empty()) {
        plan();
        return;
    }
    std::vector<news> batch;
    batch.reserve(chosen.size());
    items.clear();
    bool any_urgent = false;
    boot_clock::duration timeout = 0ms;
    exchange_in_flight = true;  // a port that wakes us from inside collect() changes nothing
    for (const auto& m : chosen) {
        if (m->owner == nullptr) continue;  // ended by another's collect()
        item it{m};
        any_urgent = any_urgent || m->urgent != never;
        timeout = std::max<boot_clock::duration>(timeout, m->options.store_timeout);
        m->urgent = never;
        m->in_flight = true;
        m->forced = never;
        if (now >= m->flushed + 20ms) m->follow_up = never;
        batch.push_back(compose(*m, now, it));
        items.push_back(std::move(it));
    }
    ++meter.exchanges;
    if (any_urgent) ++meter.urgent_exchanges;
    last_sent = now;
    const auto by = now + timeout;
    exchange = store.exchange(batch, by,
                              [this, now, by](std::error_code ec, std::vector<verdict> verdicts) {
                                  exchanged(now, by, ec, std::move(verdicts));
                              });
}

void fleet_sync::impl::exchanged(time_point sent, deadline by, std::error_code ec,
                                 std::vector<verdict> verdicts) {
    const auto now = on.now();
    const auto done = std::exchange(items, {});
    for (const auto& it : done) it.of->in_flight = false;
    if (!ec && verdicts.size() != done.size()) ec = errc::invalid;
    if (ec) {
        ++meter.exchanges_failed;
        trips.failed();
        for (const auto& it : done) it.of->forced = std::min(it.of->forced, now);
        exchange_in_flight = false;
        meter.failed(ec);
        unanswered(asked_to::write, sent, by, ec);
    } else {
        trips.answered(now - sent);
        meter.exchange_round_trips.record(now - sent);
        answered(asked_to::write, now);
        for (std::size_t i = 0; i < done.size(); ++i) settle_item(done[i], sent, verdicts[i]);
        meter.trouble(trouble());
        exchange_in_flight = false;
    }
    plan();
    finish_stop();
}

void fleet_sync::impl::settle_item(const item& it, time_point sent, const verdict& v) {
    member& m = *it.of;
    if (m.owner == nullptr) return;
    const auto now = on.now();
    meter.cost_of_exchange(v.cost);
    if (v.error) {
        meter.failed(v.error);
        // The store answers, but not about this one (a key of a foreign type): it goes on alone.
        if (!m.refused_since) m.refused_since = sent;
        m.refusal = v.error;
        const bool long_enough = now - *m.refused_since >= m.options.degraded_after;
        m.due = long_enough
                    ? now + m.options.degraded_after
                    : tick_at_or_after(now + interval_of(m), phase, m.known.rules.sync_interval);
        m.forced = m.due;
        if (long_enough) lose(m, refusal_of(m));
        return;
    }
    m.refused_since.reset();
    m.refusal.clear();
    if (m.unanswered && it.seq != 0 && m.unanswered->sent.seq == it.seq) m.unanswered.reset();
    m.pace = v.next_exchange;
    const auto tick = m.known.rules.sync_interval;
    m.due = tick_at_or_after(tick_meant_by(sent, phase, tick) + interval_of(m), phase, tick);
    m.forced = std::min(m.forced, sent + m.known.rules.live_for / 3);
    // What became urgent while a batch waited for its answer could not be collected then.
    if ((m.woken.load() & member::woken_urgently) != 0) m.urgent = std::min(m.urgent, now);
    take_verdict(m, v, sent);
}

// The membership, or everything, ends.
void fleet_sync::impl::end(member& m) {
    m.port = nullptr;
    m.owner = nullptr;
    m.ask.reset();
    m.read.cancel();
    m.reading.clear();
    m.read_next.clear();
}

void fleet_sync::impl::finish_stop() {
    if (!stop_call) return;
    for (const auto& [name, m] : members) {
        if (m->in_flight || (!m->degraded && m->has_last_news())) return;
    }
    for (const auto& [token, p] : probes) {
        if (p->step) return;
    }
    const auto done = stop_call->done;
    stop_call.reset();
    if (auto f = std::exchange(*done, nullptr)) f({}, 0);
}

}  // namespace trinco::detail
