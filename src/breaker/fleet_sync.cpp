// Life and interface of fleet_sync; the rest is in fleet_sync_*.cpp, see fleet_sync_impl.hpp.
#include "breaker/fleet_sync.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "breaker/fleet_sync_impl.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

fleet_sync::impl::impl(loop& on_loop, breaker_store& to, breaker_identity me)
    : on(on_loop), store(to), who(std::move(me)), meter(on_loop.now()) {
    phase = boot_clock::duration(on.random() %
                                 static_cast<std::uint64_t>(std::chrono::nanoseconds(1h).count()));
    notices = store.subscribe([this](const notice& n) { on_notice(n); });
    store.foretell([this](const opening& o) { return on_opening(o); });
}

fleet_sync::fleet_sync(loop& on, breaker_store& store, breaker_identity who)
    : impl_(std::make_shared<impl>(on, store, std::move(who))) {}

fleet_sync::~fleet_sync() {
    impl& s = *impl_;
    for (const auto& [name, m] : s.members) s.end(*m);
    s.members.clear();
    s.items.clear();
    s.notices.cancel();
    s.store.foretell(nullptr);
    s.exchange.cancel();
    s.timer.cancel();
    s.silence_timer.cancel();
    s.probes.clear();
    s.controls.clear();
    s.stop_call.reset();
}

std::unique_ptr<fleet_sync::membership> fleet_sync::join(std::string name,
                                                         const breaker_options& options,
                                                         fleet_port& port) {
    impl& s = *impl_;
    assert(!s.members.contains(name));
    auto m = std::make_shared<member>();
    m->owner = &s;
    m->port = &port;
    m->name = std::move(name);
    m->options = options;
    m->on = &s.on;
    m->known.rules = policy_of(options);
    m->own_text = to_text(m->known.rules);
    const auto now = s.on.now();
    m->due = tick_at_or_after(now, s.phase, m->known.rules.sync_interval);
    m->forced = m->due;
    m->met_server_at = s.met_server_at;
    m->shut_gate(now);
    s.members.emplace(m->name, m);
    s.plan(*m);
    return std::unique_ptr<membership>(new membership(std::move(m)));
}

op fleet_sync::control(control_request request, deadline by, completion<view> done) {
    return impl_->control(std::move(request), by, std::move(done));
}

op fleet_sync::stop(deadline by, completion<int> done) {
    impl& s = *impl_;
    s.stopping = true;
    auto shared = std::make_shared<completion<int>>(std::move(done));
    s.stop_call.emplace();
    s.stop_call->by = by;
    s.stop_call->done = shared;
    s.stop_call->timer = s.on.at(by, [&s] {
        const auto call = std::move(s.stop_call);
        s.stop_call.reset();
        if (auto f = std::exchange(*call->done, nullptr)) f(errc::unknown_outcome, 0);
    });
    s.on.post([self = s.weak_from_this()] {
        const auto alive = self.lock();
        if (!alive) return;
        alive->plan();
        alive->finish_stop();
    });
    return op([self = s.weak_from_this(), shared] {
        shared->reset();
        const auto alive = self.lock();
        if (alive && alive->stop_call && alive->stop_call->done == shared) {
            alive->stop_call.reset();
        }
    });
}

const fleet_port::terms* fleet_sync::terms_of(std::string_view name) const {
    const auto found = impl_->members.find(name);
    return found == impl_->members.end() ? nullptr : &found->second->known;
}

store_report fleet_sync::report(boot_clock::time_point now) const {
    return impl_->meter.report(now);
}

// ---- membership ---------------------------------------------------------------------------------

fleet_sync::membership::~membership() {
    impl* s = m_->owner;
    if (s == nullptr) return;
    const auto asked =
        m_->ask ? std::optional(std::pair(m_->ask->token, m_->ask->sent)) : std::nullopt;
    if (asked) s->hold(m_, asked->first, asked->second);
    s->members.erase(m_->name);
    s->end(*m_);
    for (const auto token : std::exchange(m_->held, {})) s->settle(token, probe_step::give_back);
    // For the others nothing has changed: all may end at once, and none looks through the rest.
    if (s->members.empty()) s->plan();
    s->finish_stop();
}

void fleet_sync::membership::wake(bool urgent) noexcept {
    const std::uint8_t bit = urgent ? member::woken_urgently : member::woken_softly;
    if ((m_->woken.fetch_or(bit) & bit) != 0) return;
    m_->on->post([m = m_, urgent] {
        if (!urgent) m->woken.fetch_and(static_cast<std::uint8_t>(~member::woken_softly));
        impl* s = m->owner;
        if (s == nullptr) return;
        if (urgent) {
            m->urgent = std::min(m->urgent, s->on.now());
            s->plan(*m);
        } else {
            s->force(*m, tick_at_or_after(s->on.now(), s->phase, m->known.rules.sync_interval));
        }
    });
}

std::chrono::milliseconds fleet_sync::membership::probe_wait(
    boot_clock::time_point now) const noexcept {
    const auto gate = boot_clock::duration(m_->gate.load(std::memory_order_relaxed));
    const auto left = gate - now.time_since_epoch();
    return left <= 0ns ? 0ms : std::chrono::ceil<std::chrono::milliseconds>(left);
}

op fleet_sync::membership::ask_probe(completion<probe_answer> done) {
    if (m_->owner == nullptr) return {};
    return m_->owner->ask(m_, std::move(done));
}

bool fleet_sync::membership::settle_probe(std::uint64_t token, probe_step how) {
    return m_->owner != nullptr && m_->owner->settle(token, how);
}

op fleet_sync::membership::refresh(completion<int> done) {
    if (m_->owner == nullptr) return {};
    return m_->owner->refresh(m_, std::move(done));
}

const fleet_port::terms& fleet_sync::membership::terms() const noexcept {
    return m_->known;
}

bool fleet_sync::membership::degraded() const noexcept {
    return m_->degraded;
}

}  // namespace trinco::detail
