#include "tests/redis_fleet/fleet_calls.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>

#include "core/loop.hpp"
#include "tests/redis_fleet/dependency_client.hpp"

namespace trinco::fleet_test {

using namespace std::chrono_literals;

std::int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               detail::boot_clock::now().time_since_epoch())
        .count();
}

void durations::add(std::int64_t us) noexcept {
    const auto bucket = std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(us, 0)));
    ++buckets_[std::min<std::size_t>(bucket, buckets_.size() - 1)];
    longest_ = std::max(longest_, us);
}

durations& durations::operator+=(const durations& o) noexcept {
    for (std::size_t b = 0; b < buckets_.size(); ++b) buckets_[b] += o.buckets_[b];
    longest_ = std::max(longest_, o.longest_);
    return *this;
}

std::uint64_t durations::count() const noexcept {
    std::uint64_t n = 0;
    for (const auto b : buckets_) n += b;
    return n;
}

std::uint64_t durations::long_ones() const noexcept {
    constexpr std::size_t first = 11;  // from 2^10 us on
    std::uint64_t n = 0;
    for (std::size_t b = first; b < buckets_.size(); ++b) n += buckets_[b];
    return n;
}

std::int64_t durations::percentile(double p) const noexcept {
    const auto wanted = static_cast<std::uint64_t>(p * static_cast<double>(count()));
    std::uint64_t n = 0;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
        n += buckets_[b];
        if (n > wanted) return std::min(std::int64_t{1} << b, longest_);
    }
    return longest_;
}

tally& tally::operator+=(const tally& o) noexcept {
    admitted += o.admitted;
    probes += o.probes;
    open += o.open;
    waiting += o.waiting;
    cached += o.cached;
    asked += o.asked;
    waited += o.waited;
    return *this;
}

namespace {

constexpr std::int64_t long_decision_us = 1'000;

long given_up_processors() {
    ::rusage of{};
    ::getrusage(RUSAGE_THREAD, &of);
    return of.ru_nvcsw;
}

void count(tally& into, const permit& p) {
    if (p) {
        ++into.admitted;
        into.probes += p.is_probe();
        return;
    }
    switch (p.refusal().reason) {
        case refusal_reason::no_probe_left:
        case refusal_reason::probe_pending:
        case refusal_reason::store_late: ++into.waiting; break;
        default: ++into.open;
    }
}

bool asked_the_store(const permit& p) {
    if (p) return p.is_probe();
    const auto reason = p.refusal().reason;
    return reason == refusal_reason::no_probe_left || reason == refusal_reason::store_late;
}

permit timed_decision(circuit_breaker& through, tally& into) {
    const auto before = given_up_processors();
    const auto begin = now_us();
    permit p = through.try_acquire();
    const auto took = now_us() - begin;
    count(into, p);
    if (asked_the_store(p)) {
        into.asked.add(took);
    } else {
        into.cached.add(took);
        into.waited += took > long_decision_us && given_up_processors() != before;
    }
    return p;
}

std::uint64_t drawn(std::uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// normal, fleet or local (whose probe it is), or unknown when that changed under way.
std::string kind_of(const permit& p, const snapshot& before, const snapshot& after) {
    if (!p.is_probe()) return "normal";
    if (before.degraded != after.degraded) return "unknown";
    const auto not_closed = [](const snapshot& s) {
        return s.fleet_state && *s.fleet_state != breaker_state::closed;
    };
    return not_closed(before) && not_closed(after) && !before.degraded ? "fleet" : "local";
}

}  // namespace

fleet_calls::fleet_calls(circuit_breaker& through, std::string instance, std::string dependency,
                         int threads)
    : through_(through), instance_(std::move(instance)), dependency_(std::move(dependency)) {
    for (int n = 0; n < threads; ++n) threads_.emplace_back([this, n] { run(n); });
}

fleet_calls::~fleet_calls() {
    stop();
}

void fleet_calls::stop() {
    {
        const std::lock_guard hold(m_);
        over_ = true;
        changed_.notify_all();
    }
    for (auto& t : threads_) {
        if (t.joinable()) t.join();
    }
}

void fleet_calls::set(const load& what) {
    const std::lock_guard hold(m_);
    load_ = what;
    changed_.notify_all();
}

tally fleet_calls::take() {
    const std::lock_guard hold(m_);
    return std::exchange(tally_, {});
}

void fleet_calls::run(int number) {
    constexpr double ticks = 1'000;  // a second, at which many calls are made together
    std::uint64_t random = std::random_device{}() + 1 + static_cast<std::uint64_t>(number);
    std::unique_ptr<dependency_client> to;
    std::unique_lock hold(m_);
    while (true) {
        changed_.wait(hold, [this] { return over_ || load_.rate > 0; });
        if (over_) return;
        const load now = load_;
        const double rate = now.rate / static_cast<double>(threads_.size());
        const double pause = 1.0 / std::min(rate, ticks);
        hold.unlock();
        if (!now.is_outside) {
            inside(now, static_cast<std::uint64_t>(std::max(1.0, rate / ticks)), random);
        } else {
            try {
                if (!to) to = std::make_unique<dependency_client>(dependency_);
                outside(*to);
            } catch (const std::runtime_error&) {
                to.reset();  // the driver has ended it
            }
        }
        // Around the pause at random, so that instances do not keep step.
        const double share = 0.75 + 0.5 * static_cast<double>(drawn(random) >> 11) * 0x1p-53;
        hold.lock();
        changed_.wait_for(hold, std::chrono::duration<double>(pause * share),
                          [this] { return over_; });
    }
}

void fleet_calls::inside(const load& l, std::uint64_t calls, std::uint64_t& random) {
    const auto fails_below = static_cast<std::uint64_t>(l.failing * 0x1p53);
    tally seen;
    std::uint64_t settled = 0;
    for (std::uint64_t n = 0; n < calls; ++n) {
        permit p = [&] {
            if (n == 0) return timed_decision(through_, seen);
            permit untimed = through_.try_acquire();
            count(seen, untimed);
            return untimed;
        }();
        if (!p) continue;
        ++settled;
        (drawn(random) >> 11) < fails_below ? p.failure() : p.success();
    }
    settled_ += settled;
    const std::lock_guard hold(m_);
    tally_ += seen;
}

void fleet_calls::outside(dependency_client& to) {
    tally seen;
    const auto before = through_.snapshot();
    const auto asked = now_us();
    permit p = timed_decision(through_, seen);
    {
        const std::lock_guard hold(m_);
        tally_ += seen;
    }
    if (!p) return;
    const auto kind = kind_of(p, before, through_.snapshot());
    const bool is_good = to.call(instance_, through_.name(), kind, asked);
    p.settle(is_good ? outcome::success : outcome::failure);
    ++settled_;
}

}  // namespace trinco::fleet_test
