// What is learnt from the store's answers and notices, and from their absence.
#include <algorithm>
#include <utility>
#include <variant>

#include "breaker/fleet_sync_impl.hpp"
#include "core/mutant.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

namespace {

// A failure noticed that long after it was due means that this process slept.
constexpr boot_clock::duration trouble_every = 20ms;
constexpr boot_clock::duration overslept = 250ms;
constexpr boot_clock::duration resync_jitter = 100ms;

// A store that refuses these credentials answers nothing about breakers, however fast it says so.
bool is_silence(std::error_code ec) noexcept {
    return ec == errc::unavailable || ec == errc::busy || ec == errc::denied ||
           kind_of(ec) == error_kind::unknown;
}

std::chrono::milliseconds left(time_point until, time_point now) noexcept {
    return until <= now ? 0ms : std::chrono::ceil<std::chrono::milliseconds>(until - now);
}

}  // namespace

view fleet_sync::member::current_view(time_point now) const {
    view v = known.fleet;
    if (TRINCO_MUTANT("sync_sends_no_view")) v = {};
    v.remaining = left(until, now);
    v.over_remaining = left(over_until, now);
    v.options_stamp = governing_stamp;
    return v;
}

// True when it is newer than what was known. Of the same knowledge the times are taken.
bool fleet_sync::impl::learn(member& m, const view& v, time_point as_of) {
    auto& known = m.known;
    const bool newer = v.newer_than(known.fleet);
    const bool same = !newer && !known.fleet.newer_than(v);
    if (!newer && !(same && as_of >= known.as_of)) return false;
    const bool other_era = v.era != known.fleet.era;
    const bool other_override = v.over != known.fleet.over;
    known.fleet = v;
    known.as_of = as_of;
    m.until = as_of + v.remaining;
    m.over_until = as_of + v.over_remaining;
    if (other_era) {
        known.window = {};
        m.follow_up = never;
    }
    if (other_era || other_override) {
        m.refused_until = {};
        m.shut_gate(on.now());
    }
    return newer;
}

void fleet_sync::impl::tell(member& m) {
    if (m.port == nullptr) return;
    m.known.urgent_after = urgent_after(m.known.window, m.known.rules, m.known.live);
    m.port->adopt(m.known);
}

void fleet_sync::impl::take_verdict(member& m, const verdict& v, time_point sent) {
    learn(m, v.fleet, sent);
    m.verdict_era = v.fleet.era;
    m.own_stamp = v.own_stamp;
    // A notice may have overtaken this answer; then only the stamp is news.
    if (!m.known.fleet.newer_than(v.fleet)) {
        if (!v.options.empty()) {
            if (v.options == m.own_text) {
                m.known.rules = policy_of(m.options);
            } else {
                const auto parsed = parse_policy(v.options, m.known.rules);
                if (const auto* rules = std::get_if<policy>(&parsed)) m.known.rules = *rules;
            }
            m.governing_text = v.options;
            m.governing_stamp = v.fleet.options_stamp;
        } else if (v.fleet.options_stamp == m.own_stamp && m.own_stamp != m.governing_stamp) {
            m.known.rules = policy_of(m.options);
            m.governing_text = m.own_text;
            m.governing_stamp = m.own_stamp;
        }
        m.store_lacks_options = v.send_options;
        m.shut_gate(on.now());  // probe_timeout may be another one now
        m.known.window = v.window;
        m.known.set_aside = v.set_aside;
        m.known.live = v.live;
    }
    if (v.send_options || v.own_stamp == 0) {
        const auto tick = m.known.rules.sync_interval;
        m.forced = std::min(m.forced, tick_at_or_after(on.now() + 1ns, phase, tick));
    }
    tell(m);
    recover(m);
}

// Of what is not plain the notice itself tells.
bool fleet_sync::impl::on_opening(const opening& o) {
    const auto found = members.find(o.breaker);
    if (found == members.end()) return false;
    const auto& m = *found->second;
    return !m.degraded && o.era > m.known.fleet.era && m.port->open_ahead(o);
}

void fleet_sync::impl::on_notice(const notice& n) {
    const auto now = on.now();
    if (n.kind == notice::kind_t::gap || n.kind == notice::kind_t::new_server) {
        const bool new_server = n.kind == notice::kind_t::new_server;
        ++(new_server ? meter.new_servers : meter.gaps);
        if (new_server && !TRINCO_MUTANT("sync_ignores_new_server")) met_server_at = now;
        for (const auto& [name, m] : members) {
            m->store_lacks_options = true;
            m->met_server_at = met_server_at;
            m->shut_gate(now);
        }
        // There is a connection again. A store that hears no notices tells gaps all the time, with
        // nothing new behind them: those must not hasten the knocking.
        const bool seldom = now - std::exchange(last_gap, now) >= knock_every();
        if (new_server || seldom || !degraded) retry_at = {};
        force_all(resync_jitter);
        return;
    }
    const auto found = members.find(n.breaker);
    if (found == members.end()) return;
    const auto m = found->second;
    if (n.kind == notice::kind_t::flush) {
        m->flushed = now;
        m->urgent = std::min(m->urgent, now);
        const auto pace = static_cast<std::uint64_t>(interval_of(*m).count());
        m->follow_up = now + 20ms + boot_clock::duration(on.random() % pace);
        plan(*m);
        return;
    }
    if (!learn(*m, n.fleet, now)) return;
    // Options that are known by their stamp only are asked for.
    if (n.fleet.options_stamp != m->governing_stamp) {
        const auto jitter = on.random() % static_cast<std::uint64_t>(resync_jitter.count());
        force(*m, now + boot_clock::duration(jitter));
    }
    tell(*m);
}

// ---- silence -----------------------------------------------------------------------------------

boot_clock::duration fleet_sync::impl::knock_every() const noexcept {
    auto shortest = boot_clock::duration::max();
    for (const auto& [name, m] : members) {
        shortest = std::min<boot_clock::duration>(shortest, m->options.degraded_after);
    }
    return shortest;
}

boot_clock::duration fleet_sync::impl::shortest_interval() const noexcept {
    boot_clock::duration shortest = breaker_options{}.sync_interval;
    for (const auto& [name, m] : members) {
        shortest = std::min<boot_clock::duration>(shortest, m->known.rules.sync_interval);
    }
    return shortest;
}

void fleet_sync::impl::answered(asked_to what, time_point now) {
    meter.wire(store.traffic());
    const bool serves = what == asked_to::write || !writes_fail;
    if (serves) last_failure.clear();
    // Each strict call is answered by a look, and waits for this; all breakers are asked.
    if (what == asked_to::write || now >= trouble_again || meter.in_trouble()) {
        trouble_again = now + trouble_every;
        meter.trouble(trouble());
    }
    if (!serves) return;
    writes_fail = false;
    last_answer = now;
    silent_since.reset();
    silence_timer.cancel();
    late = false;
    retry_at = {};
    if (!std::exchange(degraded, false)) return;
    meter.recovered(now);
    force_all(resync_jitter);
}

void fleet_sync::impl::failed(member* m, asked_to what, time_point sent, deadline by,
                              std::error_code why) {
    meter.failed(why);
    if (is_silence(why)) return unanswered(what, sent, by, why);
    if (m != nullptr) m->refusal = why;
    trouble_again = {};
    answered(what, on.now());
}

std::string fleet_sync::impl::trouble() const {
    auto why = store.trouble();
    if (!why.empty()) return why;
    if (last_failure) {
        return kind_of(last_failure) == error_kind::unknown ? "the store does not answer"
                                                            : last_failure.message();
    }
    for (const auto& [name, m] : members) {
        if (m->refusal) return refusal_of(*m);
    }
    return {};
}

std::string fleet_sync::impl::refusal_of(const member& m) {
    const bool foreign = m.refusal == errc::conflict;
    return "the store refuses the breaker \"" + m.name + "\": " +
           (foreign ? "something else than a breaker lives under its key" : m.refusal.message());
}

void fleet_sync::impl::unanswered(asked_to what, time_point sent, deadline by,
                                  std::error_code why) {
    const auto now = on.now();
    meter.wire(store.traffic());
    last_failure = why;
    meter.trouble(trouble());
    if (members.empty()) return;
    if (what == asked_to::write) writes_fail = true;
    if (last_answer < sent) late = true;
    const bool slept = now > by + overslept;
    if (slept || !silent_since) silent_since = slept ? now : std::max(sent, last_answer);
    if (degraded) {
        retry_at = last_sent + knock_every();
    } else if (retry_at <= now) {
        retry_at = tick_at_or_after(now + 1ns, phase, shortest_interval());
    }
    watch_silence();
}

// Arms the timer for the next breaker that has not been told.
void fleet_sync::impl::watch_silence() {
    auto next = never;
    for (const auto& [name, m] : members) {
        if (!m->degraded) next = std::min(next, *silent_since + m->options.degraded_after);
    }
    if (next == never) return;
    silence_timer = on.at(next, [this, next] { silence_goes_on(*silent_since, next); });
}

void fleet_sync::impl::silence_goes_on(time_point since, time_point due) {
    const auto now = on.now();
    if (now > due + overslept) {
        silent_since = now;  // it may have been we who were silent
    } else {
        const auto all = members;  // a port may end memberships when it is told
        for (const auto& [name, m] : all) {
            if (m->owner != nullptr && now - since >= m->options.degraded_after)
                lose(*m, trouble());
        }
        plan();
    }
    if (silent_since) watch_silence();
}

void fleet_sync::impl::lose(member& m, std::string_view why) {
    if (m.degraded) return;
    const auto now = on.now();
    m.degraded = true;
    if (silent_since) {
        m.forced = now;  // goes on knocking
        if (!std::exchange(degraded, true)) {
            meter.degraded(now);
        }
        retry_at = last_sent + knock_every();
    }
    m.port->store_lost(m.known.live, why);
}

void fleet_sync::impl::recover(member& m) {
    if (!m.degraded || m.port == nullptr) return;
    m.degraded = false;
    m.port->store_back();
}

}  // namespace trinco::detail
