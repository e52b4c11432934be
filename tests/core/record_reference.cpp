#include "tests/core/record_reference.hpp"

#include <algorithm>

namespace trinco::detail::test {

using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

std::int64_t us(milliseconds d) {
    return microseconds(d).count();
}

milliseconds rounded_up(std::int64_t micro) {
    return milliseconds(micro <= 0 ? 0 : (micro + 999) / 1000);
}

}  // namespace

record_reference::time record_reference::arrive(store_time now) {
    if (now.count() + skew_ < clock_) skew_ = clock_ - now.count();
    clock_ = now.count() + skew_;
    if (over_ != override_kind::none && clock_ >= over_until_) {
        over_ = override_kind::none;
        ++rev_;
    }
    return clock_;
}

void record_reference::turn_to(breaker_state s, time t) {
    era_ = std::max(era_ + 1, static_cast<era_t>(t));
    rev_ = 0;
    state_ = s;
    since_ = until_ = t;
    ++chapter_;
    suspected_ = 0;
    if (s == breaker_state::open) aside_.clear();
}

void record_reference::open_for(milliseconds d, time t) {
    turn_to(breaker_state::open, t);
    until_ = t + us(d);
}

void record_reference::open_again(time t) {
    level_ = std::min(level_ + 1, 32);
    const era_t next = std::max(era_ + 1, static_cast<era_t>(t));
    open_for(open_duration(p_, static_cast<std::uint8_t>(level_),
                           static_cast<double>(next % 1009) / 1008.0),
             t);
}

void record_reference::read(const view& theirs, time t) {
    if (theirs.era < era_ || (theirs.era == era_ && theirs.rev <= rev_)) return;
    const bool operator_spoke_since =
        era_ == 0 && theirs.era > 0 && over_ != override_kind::none && t < over_until_;
    turn_to(theirs.state, t);
    era_ = theirs.era;
    rev_ = theirs.rev;
    until_ = t + us(theirs.remaining);
    level_ = theirs.backoff_level;
    if (operator_spoke_since) {
        rev_ = std::max(rev_ + 1, static_cast<std::uint64_t>(t));
    } else {
        over_ = theirs.over;
        over_until_ = t + us(theirs.over_remaining);
    }
    aside_.clear();
    for (lease_log& l : leases_) {
        if (l.how == fate::held) l.how = fate::forgotten;
        l.chapter = -1;
    }
    taken_over_ = t;
    if (over_ != override_kind::none && t >= over_until_) {
        over_ = override_kind::none;
        ++rev_;
    }
}

bool record_reference::frozen() const {
    return over_ == override_kind::forced_open || over_ == override_kind::disabled;
}

counts record_reference::in_window(time t, std::optional<int> voter) const {
    const time slice = us(p_.window) / p_.window_slices;
    counts sum;
    for (const outcome_log& o : outcomes_) {
        const time slices_ago = t / slice - o.at / slice;
        const bool mine = !voter || *voter == o.voter;
        if (o.chapter == chapter_ && mine && slices_ago < p_.window_slices) sum += o.n;
    }
    return sum;
}

std::uint64_t record_reference::young(time t) const {
    const time slice = us(p_.sync_interval);
    std::uint64_t sum = 0;
    for (const outcome_log& o : outcomes_) {
        if (o.chapter == chapter_ && t / slice - o.at / slice < 3) sum += o.n.judged();
    }
    return sum;
}

bool record_reference::is_live(int voter, time t) const {
    const auto h = heard_.find(voter);
    return h != heard_.end() && t - h->second <= us(p_.live_for);
}

std::uint32_t record_reference::live(time t) const {
    std::uint32_t n = 0;
    for (const auto& [voter, when] : heard_) n += is_live(voter, t) ? 1 : 0;
    return n;
}

std::uint32_t record_reference::failing(time t) const {
    std::uint32_t n = 0;
    for (const auto& [voter, when] : heard_) {
        const counts own = in_window(t, voter);
        n += is_live(voter, t) && voter_is_failing(own, p_, live(t)) ? 1 : 0;
    }
    return n;
}

std::uint32_t record_reference::quorum(std::uint32_t of, time t) const {
    if (taken_over_ != 0 && t < taken_over_ + us(p_.live_for)) of = std::max(of, p_.quorum);
    return std::max(1U, std::min(p_.quorum, of));
}

void record_reference::consider_opening(time t, answer& a) {
    if (state_ != breaker_state::closed || frozen() || !knows_options_) return;
    const counts all = in_window(t, std::nullopt);
    const bool crossed = judge(all, p_) != trip_reason::none && failing(t) >= quorum(live(t), t);
    const bool deciding = suspected_ != 0;
    if (deciding && t < suspected_ + 20'000) return;
    suspected_ = 0;
    if (!crossed) return;
    if (!deciding && young(t) * 10 > all.judged()) {
        suspected_ = t;
        a.flush = true;
        return;
    }
    if (t - since_ >= us(p_.open_max)) level_ = 0;
    const era_t next = std::max(era_ + 1, static_cast<era_t>(t));
    open_for(open_duration(p_, static_cast<std::uint8_t>(level_),
                           static_cast<double>(next % 1009) / 1008.0),
             t);
}

record_reference::answer record_reference::tell(int voter, time t) {
    answer a;
    a.fleet.era = era_;
    a.fleet.rev = rev_;
    a.fleet.state = state_;
    if (state_ != breaker_state::half_open) a.fleet.remaining = rounded_up(until_ - t);
    a.fleet.backoff_level = static_cast<std::uint8_t>(level_);
    a.fleet.over = over_;
    if (over_ != override_kind::none) a.fleet.over_remaining = rounded_up(over_until_ - t);
    a.window = in_window(t, std::nullopt);
    a.failing = failing(t);
    a.live = live(t);
    a.totals = totals_;
    a.set_aside = aside_.contains(voter);
    const std::uint32_t used =
        held() + (state_ == breaker_state::half_open ? results(std::nullopt, std::nullopt) : 0);
    if (state_ != breaker_state::closed && used < p_.half_open_probes) {
        a.probes_left = p_.half_open_probes - used;
    }
    return a;
}

record_reference::answer record_reference::exchange(int instance, int voter, const news& n,
                                                    store_time now) {
    const time t = arrive(now);
    read(n.mine, t);
    heard_[voter] = t;
    if (!knows_options_) {
        knows_options_ = true;
        ++rev_;
    }
    bool counted = false;
    if (n.seq > last_seq_[instance]) {
        counted = true;
        last_seq_[instance] = n.seq;
        totals_ += n.stale;
        for (const slice& s : n.slices) {
            totals_ += s.n;
            const time at = t - us(s.age);
            const time length = us(p_.window) / p_.window_slices;
            const bool fits = at >= 0 && t / length - at / length < p_.window_slices;
            if (n.mine.era == era_ && fits) outcomes_.push_back({chapter_, at, voter, s.n});
        }
    }
    answer first;
    consider_opening(t, first);
    answer a = tell(voter, t);
    a.counted = counted;
    a.flush = first.flush;
    return a;
}

// ---- probes -------------------------------------------------------------------------------------

// Settled in this era by voters that are not set aside.
std::uint32_t record_reference::results(std::optional<fate> how, std::optional<int> voter) const {
    std::uint32_t n = 0;
    for (const lease_log& l : leases_) {
        if (l.chapter != chapter_ || (l.how != fate::good && l.how != fate::bad)) continue;
        if (how && l.how != *how) continue;
        if (voter ? l.voter == *voter : !aside_.contains(l.voter)) ++n;
    }
    return n;
}

std::uint32_t record_reference::held() const {
    return static_cast<std::uint32_t>(std::count_if(
        leases_.begin(), leases_.end(), [](const lease_log& l) { return l.how == fate::held; }));
}

// What only time, or results that changed meaning, bring about.
void record_reference::pass_time(time t) {
    if (frozen()) return;
    std::uint32_t vanished = 0;
    for (lease_log& l : leases_) {
        if (l.how == fate::held && t >= l.deadline + us(p_.probe_timeout) / 10) {
            l.how = fate::vanished;
            l.vanished_in = l.era == era_ ? chapter_ : -1;
            spent_.push_back({l.token, false});
        }
        if (l.vanished_in == chapter_) ++vanished;
    }
    if (state_ != breaker_state::half_open) return;
    if (vanished >= p_.half_open_probes) return open_again(t);
    if (closing_is_impossible(results(fate::bad, std::nullopt), p_)) {
        std::set<int> losers;
        for (const lease_log& l : leases_) {
            if (l.chapter == chapter_ && l.how == fate::bad) losers.insert(l.voter);
        }
        if (losers.size() >= quorum(live(t), t)) return open_again(t);
        aside_ = losers;
        put_aside_at_ = t;
        ++rev_;
    }
    if (results(std::nullopt, std::nullopt) >= p_.half_open_probes) {
        turn_to(breaker_state::closed, t);
        until_ = t + us(p_.recovery_ramp);
        return;
    }
    if (aside_.empty()) return;
    time last = 0;
    for (const auto& [voter, when] : asked_) {
        if (!aside_.contains(voter)) last = std::max(last, when);
    }
    const bool came = last > put_aside_at_;
    const time patience =
        came ? std::max(us(p_.probe_timeout), us(p_.live_for)) : us(p_.probe_timeout);
    if (t - (came ? last : put_aside_at_) >= patience) open_again(t);
}

bool record_reference::may_have_a_probe(int voter, std::uint64_t token, time t) const {
    const bool is_spent =
        std::any_of(spent_.begin(), spent_.end(), [&](const said& s) { return s.token == token; });
    const bool is_out = std::any_of(leases_.begin(), leases_.end(), [&](const lease_log& l) {
        return l.token == token && l.how == fate::held;
    });
    if (state_ == breaker_state::closed || frozen() || is_spent || is_out) return false;
    if (state_ == breaker_state::open && t < until_) return false;
    if (taken_over_ != 0 && t < taken_over_ + us(p_.probe_timeout)) return false;
    if (!knows_options_ || aside_.contains(voter)) return false;
    if (state_ == breaker_state::open) return held() < p_.half_open_probes;
    if (held() + results(std::nullopt, std::nullopt) >= p_.half_open_probes) return false;

    std::uint32_t mine = results(std::nullopt, voter);
    time asked_by_other = since_;
    time settled_by_other = since_;
    for (const lease_log& l : leases_) {
        if (l.voter == voter) {
            mine += l.how == fate::held && l.era == era_ ? 1 : 0;
        } else if (l.chapter == chapter_ && !aside_.contains(l.voter) &&
                   (l.how == fate::good || l.how == fate::bad)) {
            settled_by_other = std::max(settled_by_other, l.ended);
        }
    }
    std::uint32_t candidates = is_live(voter, t) ? 0 : 1;
    for (const auto& [other, when] : heard_) {
        candidates += is_live(other, t) && !aside_.contains(other) ? 1 : 0;
    }
    for (const auto& [other, when] : asked_) {
        if (other != voter && !aside_.contains(other)) {
            asked_by_other = std::max(asked_by_other, when);
        }
    }
    const bool alone = t - asked_by_other >= us(p_.probe_timeout) ||
                       t - settled_by_other >= 2 * us(p_.probe_timeout);
    const std::uint32_t parts = alone ? 1 : quorum(candidates, t);
    return mine * parts < p_.half_open_probes;  // mine < ceil(N / parts)
}

record_reference::answer record_reference::probe(int voter, const probe_request& p,
                                                 store_time now) {
    const time t = arrive(now);
    read(p.mine, t);
    const auto lease = std::find_if(leases_.begin(), leases_.end(), [&](const lease_log& l) {
        return l.token == p.token && l.how == fate::held;
    });
    const auto answered = std::find_if(spent_.begin(), spent_.end(),
                                       [&](const said& s) { return s.token == p.token; });
    bool granted = false;
    if (p.step == probe_step::take) {
        if (state_ == breaker_state::half_open && !frozen()) asked_[voter] = t;
        pass_time(t);
        const bool still = lease != leases_.end() && lease->how == fate::held;
        granted = (still && lease->era == era_) || may_have_a_probe(voter, p.token, t);
        if (granted && !still) {
            if (state_ == breaker_state::open) turn_to(breaker_state::half_open, t);
            heard_[voter] = asked_[voter] = t;
            lease_log l{p.token, era_, voter, t + us(p_.probe_timeout)};
            l.chapter = chapter_;
            leases_.push_back(l);
            ++rev_;
        }
    } else {
        if (answered != spent_.end()) {
            granted = answered->granted;
        } else {
            if (lease != leases_.end()) {
                granted = lease->era == era_ && state_ == breaker_state::half_open;
                const bool good = p.step == probe_step::success && t <= lease->deadline;
                lease->how = !granted || p.step == probe_step::give_back ? fate::returned
                             : good                                      ? fate::good
                                                                         : fate::bad;
                lease->ended = t;
                if (granted) {
                    heard_[lease->voter] = t;
                    ++rev_;
                }
            }
            spent_.push_back({p.token, granted});
        }
        pass_time(t);
    }
    answer a = tell(voter, t);
    a.granted = granted;
    return a;
}

record_reference::answer record_reference::control(const control_request& c, store_time now) {
    const time t = arrive(now);
    if (controls_.insert(c.id).second) {
        const auto put = [&](override_kind k) {
            over_ = k;
            over_until_ = t + us(c.expires);
            rev_ = std::max(rev_ + 1, static_cast<std::uint64_t>(t));
        };
        switch (c.verb) {
            case control_verb::trip: open_for(c.expires, t); break;
            case control_verb::reset:
                turn_to(breaker_state::closed, t);
                level_ = 0;
                aside_.clear();
                break;
            case control_verb::force_open: put(override_kind::forced_open); break;
            case control_verb::disable: put(override_kind::disabled); break;
            case control_verb::observe: put(override_kind::observing); break;
            case control_verb::resume:
                if (over_ != override_kind::none) put(override_kind::none);
                break;
            default: break;
        }
    }
    return tell(-1, t);
}

}  // namespace trinco::detail::test
