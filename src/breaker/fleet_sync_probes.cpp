// Probes: asked for, held, settled, given back, and never left behind.
#include <algorithm>
#include <utility>

#include "breaker/fleet_sync_impl.hpp"
#include "core/mutant.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds shortest_refusal = 10ms;

std::chrono::milliseconds wait_until(time_point gate, time_point now) noexcept {
    return gate <= now ? 0ms : std::chrono::ceil<std::chrono::milliseconds>(gate - now);
}

}  // namespace

void fleet_sync::member::shut_gate(time_point now) noexcept {
    auto until_then = std::max(refused_until, quarantined_until());
    if (ask) until_then = std::max(until_then, ask->sent + options.store_timeout);
    gate.store(until_then <= now ? 0 : until_then.time_since_epoch().count(),
               std::memory_order_relaxed);
}

op fleet_sync::impl::refuse(const member_ptr& m, completion<probe_answer> done) {
    probe_answer answer;
    const auto gate = time_point(boot_clock::duration(m->gate.load(std::memory_order_relaxed)));
    answer.retry_after = std::max(shortest_refusal, wait_until(gate, on.now()));
    return on.at(on.now(), [m, answer, done = std::move(done)]() mutable {
        if (m->owner != nullptr) done({}, answer);
    });
}

op fleet_sync::impl::ask(const member_ptr& m, completion<probe_answer> done) {
    const auto now = on.now();
    if (late && m->refused_until <= now) {
        m->refused_until = now + std::max(shortest_refusal, m->known.rules.sync_interval);
        m->shut_gate(now);
    }
    const bool shut = m->gate.load(std::memory_order_relaxed) > now.time_since_epoch().count();
    if (stopping || m->ask || shut) return refuse(m, std::move(done));

    probe_request r;
    r.breaker = m->name;
    r.mine = m->current_view(now);
    r.step = probe_step::take;
    while (r.token == 0) r.token = on.random();
    r.lease = m->known.rules.probe_timeout;
    const auto by = now + m->options.store_timeout;
    auto shared = std::make_shared<completion<probe_answer>>(std::move(done));
    m->ask.emplace();
    m->ask->token = r.token;
    m->ask->sent = now;
    m->ask->done = shared;
    m->shut_gate(now);
    ++meter.probes_asked;
    m->ask->request = store.probe(
        r, by, [this, m, token = r.token, by](std::error_code ec, const probe_reply& reply) {
            asked(m, token, by, ec, reply);
        });
    return op([shared] { shared->reset(); });
}

void fleet_sync::impl::asked(const member_ptr& m, std::uint64_t token, deadline by,
                             std::error_code ec, const probe_reply& reply) {
    const auto now = on.now();
    const auto sent = m->ask->sent;
    const auto done = m->ask->done;
    const auto request = std::move(m->ask->request);
    m->ask.reset();
    const bool outdated = m->known.fleet.era > reply.fleet.era || m->quarantined_until() > now;
    probe_answer answer;
    if (ec) {
        m->refused_until = now + std::max(shortest_refusal, m->known.rules.sync_interval);
        failed(m.get(), asked_to::write, sent, by, ec);
        // It may have been granted.
        if (kind_of(ec) == error_kind::unknown) {
            hold(m, token, sent);
            settle(token, probe_step::give_back);
        }
    } else {
        if (reply.granted) hold(m, token, sent);
        meter.probe_round_trips.record(now - sent);
        answered(asked_to::write, on.now());
        const bool newer = learn(*m, reply.fleet, sent);
        if (!m->known.fleet.newer_than(reply.fleet)) {
            m->known.set_aside = reply.set_aside;
            m->known.live = std::max(m->known.live, reply.live);
        }
        if (!reply.granted) {
            m->refused_until = std::max(sent + reply.retry_after, now + shortest_refusal);
        }
        if (newer) tell(*m);
        const auto mine = probes.find(token);
        if (reply.granted && mine != probes.end() && !mine->second->step) {
            if (outdated || !*done || m->owner == nullptr || now >= mine->second->expires) {
                settle(token, probe_step::give_back);
            } else {
                ++meter.probes_granted;
                answer.granted = true;
                answer.token = token;
                answer.era = reply.fleet.era;
                answer.expires = mine->second->expires;
            }
        }
    }
    m->shut_gate(now);
    if (m->owner == nullptr || !*done) return;
    if (!answer.granted) {
        answer.retry_after = std::max(
            shortest_refusal, wait_until(std::max(m->refused_until, m->quarantined_until()), now));
    }
    std::exchange(*done, nullptr)({}, answer);  // taken out first: it may destroy its op
}

void fleet_sync::impl::hold(const member_ptr& m, std::uint64_t token, time_point sent) {
    auto p = std::make_unique<held_probe>();
    p->of = m;
    p->name = m->name;
    p->mine = m->current_view(on.now());
    p->timeout = m->options.store_timeout;
    p->token = token;
    p->lease = m->known.rules.probe_timeout;
    p->expires = sent + p->lease;
    p->reclaimed = p->expires + p->lease / 10;
    p->timer = on.at(p->expires, [this, token] {
        const auto& overdue = *probes.at(token);
        if (overdue.step) return;
        ++meter.probes_overdue;
        settle(token, probe_step::failure);
    });
    probes[token] = std::move(p);
    m->held.push_back(token);
}

void fleet_sync::impl::forget_probe(std::uint64_t token) {
    const auto found = probes.find(token);
    if (const auto m = found->second->of.lock()) std::erase(m->held, token);
    probes.erase(found);
}

bool fleet_sync::impl::settle(std::uint64_t token, probe_step how) {
    const auto found = probes.find(token);
    if (found == probes.end() || found->second->step) return false;
    held_probe& p = *found->second;
    const bool in_time = on.now() < p.expires;
    p.step = in_time ? how : probe_step::failure;
    if (TRINCO_MUTANT("sync_probe_never_settled") && p.step != probe_step::give_back)
        return in_time;
    send_settlement(p);
    return in_time;
}

void fleet_sync::impl::send_settlement(held_probe& p) {
    const auto now = on.now();
    probe_request r;
    r.breaker = p.name;
    const auto m = p.of.lock();
    r.mine = m && m->owner != nullptr ? m->current_view(now) : p.mine;
    r.step = *p.step;
    r.token = p.token;
    r.lease = p.lease;
    const auto by = now + p.timeout;
    ++meter.settlements;
    p.request = store.probe(
        r, by, [this, now, by, token = p.token](std::error_code ec, const probe_reply& reply) {
            held_probe& mine = *probes.at(token);
            const auto of = mine.of.lock();
            if (ec) {
                failed(of.get(), asked_to::write, now, by, ec);
                if (on.now() >= mine.reclaimed) {
                    forget_probe(token);
                } else {
                    const auto again = std::max(on.now() + shortest_interval(), retry_at);
                    mine.timer =
                        on.at(again, [this, token] { send_settlement(*probes.at(token)); });
                }
            } else {
                forget_probe(token);
                meter.probe_round_trips.record(on.now() - now);
                answered(asked_to::write, on.now());
                if (of && of->owner != nullptr) {
                    const bool newer = learn(*of, reply.fleet, now);
                    if (!of->known.fleet.newer_than(reply.fleet))
                        of->known.set_aside = reply.set_aside;
                    if (newer) tell(*of);
                }
            }
            finish_stop();
        });
}

}  // namespace trinco::detail
