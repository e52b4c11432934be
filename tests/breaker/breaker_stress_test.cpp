// Eight threads on one real breaker. Run under ThreadSanitizer too (label stress).

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "breaker/access.hpp"
#include "trinco/circuit_breaker.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;

constexpr int threads = 8;
constexpr int rounds = 100'000;

// What the threads did, by their own account.
struct tally {
    std::uint64_t success = 0;
    std::uint64_t failure = 0;
    std::uint64_t ignored = 0;
    std::uint64_t rejected = 0;
    tally& operator+=(const tally& o) {
        success += o.success;
        failure += o.failure;
        ignored += o.ignored;
        rejected += o.rejected;
        return *this;
    }
};

template <class F>
tally in_threads(F work) {
    std::array<tally, threads> each;
    std::vector<std::thread> all;
    std::latch start(threads);  // so that they really run at the same time
    for (unsigned t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            start.arrive_and_wait();
            each[t] = work(t);
        });
    }
    for (auto& t : all) t.join();
    tally sum;
    for (const auto& t : each) sum += t;
    return sum;
}

void expect_sums(const snapshot& s, const tally& did) {
    EXPECT_EQ(s.totals.rejected, did.rejected);
    EXPECT_EQ(s.totals.success + s.totals.failure + s.totals.ignored + s.stale,
              did.success + did.failure + did.ignored);
    EXPECT_LE(s.totals.success, did.success);
    EXPECT_LE(s.totals.failure, did.failure);
    EXPECT_LE(s.totals.ignored, did.ignored);
    EXPECT_EQ(s.probes_in_flight, 0U);
}

breaker_options nervous() {
    breaker_options o;
    o.window = 100ms;
    o.minimum_calls = 10;
    o.open_for = 10ms;
    o.open_max = 20ms;
    o.half_open_probes = 3;
    o.sync_interval = 10ms;
    return o;
}

// Time is stepped by the threads themselves, so that thousands of openings fit into a second.
TEST(BreakerStress, ProbesNeverExceedTheirNumberAndCountsAreExact) {
    std::atomic<std::int64_t> now{86'400'000'000'000};
    detail::engine_env env;
    env.clock = &now;
    auto b = detail::breaker_access::make("b", nervous(), std::move(env));
    std::atomic<int> probes{0};
    std::atomic<int> most{0};
    std::atomic<int> events{0};
    const auto s = b->on_event([&](const event&) { ++events; });
    const auto did = in_threads([&](unsigned t) {
        std::minstd_rand random(t + 1);
        tally mine;
        for (int i = 0; i < rounds; ++i) {
            if (random() % 16 == 0) now += 100'000;  // 0.1 ms
            auto p = b->try_acquire();
            if (!p) {
                ++mine.rejected;
                continue;
            }
            const bool probe = p.is_probe();
            if (probe) {
                const int out = ++probes;
                for (int seen = most; out > seen && !most.compare_exchange_weak(seen, out);) {
                }
                std::this_thread::yield();
                --probes;  // before it is settled: afterwards the next may be out already
            }
            // Healthy, then failing, then healthy again.
            const bool failing = (now.load() / 20'000'000) % 2 == 0;
            switch (random() % (failing ? 3 : 20)) {
                case 0:
                    p.failure();
                    ++mine.failure;
                    break;
                case 1:
                    p.ignore();
                    ++mine.ignored;
                    break;
                default:
                    p.success();
                    ++mine.success;
                    break;
            }
        }
        return mine;
    });
    EXPECT_LE(most, 3);
    EXPECT_GT(most, 0);
    EXPECT_GT(events, 2);
    expect_sums(b->snapshot(), did);
}

TEST(BreakerStress, OnRealTimeWithEverythingOn) {
    auto o = nervous();
    o.slow_call_after = 5ms;
    o.call_timeout = 1h;
    o.consecutive_failures = 20;
    o.recovery_ramp = 10ms;
    circuit_breaker b("b", o);
    std::atomic<bool> done{false};
    std::thread looker([&] {
        while (!done) {
            (void)b.snapshot();
            (void)b.trip("stress", 1ms);
            (void)b.observe("stress", 1ms);
            (void)b.reset("stress");
            std::this_thread::yield();
        }
    });
    const auto did = in_threads([&](unsigned t) {
        std::minstd_rand random(t + 1);
        tally mine;
        std::vector<permit> held;  // settled later, in other eras
        for (int i = 0; i < rounds; ++i) {
            auto p = b.try_acquire();
            if (!p) {
                ++mine.rejected;
                continue;
            }
            if (random() % 64 == 0) {
                held.push_back(std::move(p));
                ++mine.ignored;
                if (held.size() > 32) held.clear();
                continue;
            }
            if (random() % 4 == 0) {
                p.failure();
                ++mine.failure;
            } else {
                p.success();
                ++mine.success;
            }
        }
        return mine;
    });
    done = true;
    looker.join();
    expect_sums(b.snapshot(), did);
}

TEST(BreakerStress, PermitsMayBeSettledOnAnotherThread) {
    auto o = nervous();
    o.failure_rate = 1.0;
    o.slow_call_after = 1h;
    circuit_breaker b("b", o);
    constexpr std::size_t places = 64;
    struct place {
        std::mutex m;
        permit p;
    };
    std::array<place, places> table;
    const auto did = in_threads([&](unsigned t) {
        std::minstd_rand random(t + 1);
        tally mine;
        for (int i = 0; i < rounds; ++i) {
            auto p = b.try_acquire();
            if (!p) {
                ++mine.rejected;
                continue;
            }
            ++mine.success;
            auto& at = table[random() % places];
            const std::lock_guard hold(at.m);
            std::swap(at.p, p);
            p.success();
        }
        return mine;
    });
    for (auto& at : table) at.p.success();
    EXPECT_EQ(b.snapshot().totals, (counts{.success = did.success, .rejected = did.rejected}));
    EXPECT_EQ(b.snapshot().overdue, 0U);
}

}  // namespace
}  // namespace trinco::test
