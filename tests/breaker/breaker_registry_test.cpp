// The registry: identity, options, bound; alone and over a store.

#include "trinco/breaker_registry.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "breaker/access.hpp"
#include "trinco/memory.hpp"
#include "trinco/store.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;

std::error_code code_of(auto&& f) {
    try {
        f();
    } catch (const std::system_error& e) {
        return e.code();
    }
    return {};
}

TEST(BreakerRegistry, OneNameIsOneBreaker) {
    breaker_registry r;
    auto& a = r.get("payments");
    EXPECT_EQ(&a, &r.get("payments"));
    EXPECT_NE(&a, &r.get("mail"));
    EXPECT_EQ(r.find("payments"), &a);
    EXPECT_EQ(r.find("nobody"), nullptr);
    EXPECT_EQ(r.names(), (std::vector<std::string>{"mail", "payments"}));
    EXPECT_EQ(r.size(), 2U);
}

TEST(BreakerRegistry, OptionsByNameAndDefaults) {
    registry_options o;
    o.defaults.minimum_calls = 7;
    breaker_registry r(o);
    breaker_options mine;
    mine.minimum_calls = 3;
    r.configure("payments", mine);
    EXPECT_EQ(r.get("payments").options().minimum_calls, 3U);
    EXPECT_EQ(r.get("mail").options().minimum_calls, 7U);
    r.configure("payments", mine);  // the same again is no conflict
    mine.minimum_calls = 4;
    EXPECT_EQ(code_of([&] { r.configure("payments", mine); }), make_error_code(errc::conflict));
    EXPECT_EQ(r.get("payments").options().minimum_calls, 3U);
}

TEST(BreakerRegistry, IsBounded) {
    registry_options o;
    o.most = 3;
    breaker_registry r(o);
    for (const char* name : {"a", "b", "c"}) (void)r.get(name);
    breaker_fault why;
    EXPECT_EQ(r.get("d", why), nullptr);
    EXPECT_EQ(why.code, make_error_code(errc::busy));
    EXPECT_NE(why.message.find("\"d\""), std::string::npos);
    EXPECT_EQ(r.get("a", why), r.find("a"));
    EXPECT_FALSE(why.code);
    EXPECT_EQ(code_of([&] { (void)r.get("d"); }), make_error_code(errc::busy));
    EXPECT_EQ(r.size(), 3U);
}

TEST(BreakerRegistry, ConfiguredNamesAreBoundedToo) {
    registry_options o;
    o.most = 2;
    breaker_registry r(o);
    r.configure("a", {});
    r.configure("b", {});
    r.configure("a", {});
    EXPECT_EQ(code_of([&] { r.configure("c", {}); }), make_error_code(errc::busy));
}

TEST(BreakerRegistry, RefusesBadNamesAndOptions) {
    const auto invalid = make_error_code(errc::invalid);
    breaker_registry r;
    EXPECT_EQ(code_of([&] { (void)r.get("a b"); }), invalid);
    EXPECT_EQ(r.size(), 0U);
    breaker_options wrong;
    wrong.failure_rate = -1;
    EXPECT_EQ(code_of([&] { r.configure("a", wrong); }), invalid);
    registry_options o;
    o.defaults = wrong;
    EXPECT_EQ(code_of([&] { breaker_registry x(o); }), invalid);
    o = {};
    o.most = 0;
    EXPECT_EQ(code_of([&] { breaker_registry x(o); }), invalid);
    EXPECT_EQ(code_of([&] { breaker_registry x{store()}; }), invalid);
}

TEST(BreakerRegistry, IdentityHoldsForThreadsThatRace) {
    breaker_registry r;
    std::vector<std::set<circuit_breaker*>> seen(50);
    std::mutex m;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (std::size_t i = 0; i < seen.size(); ++i) {
                auto* const b = &r.get("b" + std::to_string(i));
                const std::lock_guard hold(m);
                seen[i].insert(b);
            }
        });
    }
    for (auto& t : threads) t.join();
    for (const auto& s : seen) EXPECT_EQ(s.size(), 1U);
}

// Two processes, as far as the store is concerned. What the one forces the other obeys.
TEST(BreakerRegistry, SharedOverAStore) {
    const auto memory = drivers::memory();
    store_settings one;
    one.instance = "one";
    one.voter = "machine-1";
    store_settings two;
    two.instance = "two";
    two.voter = "machine-2";
    const auto store_one = open("memory:", {memory}, one);
    const auto store_two = open("memory:", {memory}, two);
    breaker_registry a(store_one);
    breaker_registry b(store_two);
    EXPECT_TRUE(detail::breaker_access::core(b.get("payments")).in_fleet());

    std::atomic<bool> obeyed{false};
    const auto s = b.get("payments").on_event([&](const event& e) {
        if (e.now.over == override_kind::forced_open) {
            obeyed = true;
            obeyed.notify_all();
        }
    });
    EXPECT_FALSE(a.get("payments").force_open("incident 7", 1h));
    obeyed.wait(false);  // the test's own time limit ends a wait for ever
    const auto p = b.get("payments").try_acquire();
    EXPECT_EQ(p.refusal().by, refused_by::operator_override);
    EXPECT_NE(b.get("payments").snapshot().over_reason.find("incident 7"), std::string::npos);
    EXPECT_FALSE(a.get("payments").try_acquire());
}

// The very first thing that a fleet hears, and what one learns that joins later.
TEST(BreakerRegistry, AnOperatorsReasonReachesEverybody) {
    const auto memory = drivers::memory();
    store_settings who;
    who.instance = "ann";
    const auto where = open("memory:", {memory}, who);
    const auto told = [](circuit_breaker& b, event_kind kind, auto&& act) {
        std::mutex m;
        std::string reason;
        std::atomic<bool> said{false};
        const auto s = b.on_event([&](const event& e) {
            if (e.kind != kind || said) return;
            {
                const std::lock_guard hold(m);
                reason = e.reason;
            }
            said = true;
            said.notify_all();
        });
        act();
        said.wait(false);
        const std::lock_guard hold(m);
        return reason;
    };
    breaker_registry r(where);
    auto& a = r.get("a");
    EXPECT_EQ(told(a, event_kind::state_changed, [&] { EXPECT_FALSE(a.trip("drill")); }),
              "drill (by ann)");
    EXPECT_EQ(a.snapshot().reason, "drill (by ann)");

    breaker_registry later(open("memory:", {memory}, {}));
    auto& b = later.get("a");
    while (b.state() != breaker_state::open) std::this_thread::yield();
    EXPECT_EQ(b.snapshot().reason, "drill (by ann)");

    EXPECT_EQ(told(a, event_kind::override_changed, [&] { EXPECT_FALSE(a.disable("noise")); }),
              "noise (by ann)");
    EXPECT_EQ(told(a, event_kind::override_changed, [&] { EXPECT_FALSE(a.resume("quiet")); }),
              "quiet");
    EXPECT_EQ(a.snapshot().reason, "drill (by ann)");
}

// Who was started later governs; the other one is told so.
TEST(BreakerRegistry, AProcessLearnsThatOtherOptionsGovern) {
    const auto memory = drivers::memory();
    registry_options first;
    first.defaults.failure_rate = 0.4;
    breaker_registry a(open("memory:", {memory}), first);
    auto& mine = a.get("payments");
    while (!mine.snapshot().fleet_state) std::this_thread::yield();
    std::mutex m;
    std::vector<std::string> told;
    std::atomic<int> events{0};
    const auto s = mine.on_event([&](const event& e) {
        if (e.kind != event_kind::options_differ) return;
        const std::lock_guard hold(m);
        told.push_back(e.reason);
        ++events;
        events.notify_all();
    });
    registry_options second;
    second.defaults.failure_rate = 0.3;
    breaker_registry b(open("memory:", {memory}), second);
    auto& theirs = b.get("payments");
    events.wait(0);
    EXPECT_EQ(mine.snapshot().options_differ, "failure_rate=0.3 (here 0.4)");
    EXPECT_EQ(mine.snapshot().failure_rate, 0.3);
    EXPECT_EQ(theirs.snapshot().options_differ, "");
    const std::lock_guard hold(m);
    EXPECT_EQ(told, (std::vector<std::string>{"failure_rate=0.3 (here 0.4)"}));
}

TEST(BreakerRegistry, ReportsWhatItsConversationWasLike) {
    const breaker_registry alone;
    EXPECT_EQ(alone.report().store, "");
    EXPECT_EQ(alone.report().exchanges, 0U);

    const auto memory = drivers::memory();
    const auto where = open("memory:metered", {memory});
    registry_options o;
    o.defaults.consistency = consistency::strict;
    breaker_registry r(where, o);
    auto& b = r.get("payments");
    while (!b.snapshot().fleet_state) std::this_thread::yield();
    const auto before = r.report();
    EXPECT_EQ(before.store, "memory:metered");
    EXPECT_GE(before.exchanges + before.strict_exchanges, 1U);
    EXPECT_EQ(before.exchange_round_trips.count, before.exchanges + before.strict_exchanges);
    for (int i = 0; i < 20; ++i) b.try_acquire().success();
    const auto after = r.report();
    EXPECT_EQ(after.looks - before.looks, 20U) << "one a call";
    EXPECT_EQ(after.strict_exchanges, before.strict_exchanges);
    EXPECT_EQ(after.look_round_trips.count - before.look_round_trips.count, 20U);
    EXPECT_GE(after.look_round_trips.longest, after.look_round_trips.quantile(0.5));
    EXPECT_EQ(after.errors.unanswered, 0U);
    EXPECT_FALSE(after.degraded);
    EXPECT_GE(after.measured_for, before.measured_for);
    // Also where nothing may wait.
    std::atomic<bool> asked{false};
    const auto s = b.on_event([&](const event&) {
        (void)r.report();
        asked = true;
        asked.notify_all();
    });
    EXPECT_FALSE(b.trip("drill"));
    asked.wait(false);
}

TEST(BreakerRegistry, WhatIsWrongWithAnOptionNamesTheBreaker) {
    breaker_options o;
    o.failure_rate = 0;
    const std::string wrong = "failure_rate is 0, but must be more than 0 and at most 1";
    const auto sentence_of = [](auto&& f) -> std::string {
        try {
            f();
        } catch (const breaker_error& e) {
            return e.what();
        }
        return "taken";
    };
    breaker_registry r(registry_options{.most = 3});
    EXPECT_EQ(sentence_of([&] { r.configure("x", o); }), "breaker \"x\": " + wrong);
    EXPECT_EQ(sentence_of([&] { circuit_breaker b("x", o); }), "breaker \"x\": " + wrong);
    EXPECT_EQ(sentence_of([&] { breaker_registry bad(registry_options{.defaults = o}); }),
              "the defaults of the registry: " + wrong);
}

// A thread waits for a probe of the fleet's, and its outcome closes the breaker for all.
TEST(BreakerRegistry, AThreadGetsAProbeOfTheFleet) {
    const auto memory = drivers::memory();
    const auto where = open("memory:", {memory});
    registry_options o;
    o.defaults.half_open_probes = 1;
    o.defaults.quorum = 1;
    o.defaults.store_timeout = o.defaults.degraded_after = 5s;
    breaker_registry r(where, o);
    auto& b = r.get("payments");
    std::atomic<int> closed{0};
    const auto s = b.on_event([&](const event& e) {
        if (e.kind == event_kind::state_changed && e.to == breaker_state::closed) {
            ++closed;
            closed.notify_all();
        }
    });
    EXPECT_FALSE(b.trip("test", 1ms));
    auto probe = b.try_acquire();
    while (!probe) probe = b.try_acquire();
    EXPECT_TRUE(probe.is_probe());
    probe.success();
    closed.wait(0);
    EXPECT_EQ(b.state(), breaker_state::closed);
}

// Whatever the parent's other threads held at the fork, the child waits for nothing of it.
TEST(BreakerRegistry, AChildProcessIsToldSoAndHarmsNothing) {
    const auto memory = drivers::memory();
    const auto where = open("memory:", {memory});
    auto r = std::make_unique<breaker_registry>(where);
    auto& b = r->get("payments");
    EXPECT_FALSE(b.force_open("incident 7", 1h));
    const auto child = ::fork();
    if (child == 0) {
        // No assertions here: the exit code tells.
        int bad = 0;
        breaker_fault why;
        if (r->get("mail", why) != nullptr || why.code != errc::forked) bad |= 1;
        if (code_of([&] { const breaker_registry other(where); }) != errc::forked) bad |= 2;
        if (b.resume("child") != errc::forked) bad |= 4;
        if (b.try_acquire()) bad |= 8;
        r.reset();
        ::_exit(bad);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "the child did not end by itself";
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_FALSE(b.resume("over"));
    EXPECT_TRUE(b.try_acquire());
}

// A callback that does not return holds up the store's thread, but not the registry's end.
TEST(BreakerRegistry, ClosingIsBounded) {
    const auto memory = drivers::memory();
    struct gate {
        std::atomic<bool> entered{false};
        std::atomic<bool> open{false};
    };
    const auto g = std::make_shared<gate>();
    store_settings settings;
    settings.close_timeout = 0ms;
    auto where = open("memory:", {memory}, settings);
    auto r = std::make_unique<breaker_registry>(where);
    auto s = r->get("payments").on_event([g](const event& e) {
        if (e.kind != event_kind::override_changed) return;
        g->entered = true;
        g->entered.notify_all();
        g->open.wait(false);
    });
    std::thread operates([&] { (void)r->get("payments").observe("test"); });
    g->entered.wait(false);
    operates.join();
    const auto began = std::chrono::steady_clock::now();
    r.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
    g->open = true;
    g->open.notify_all();
    s = {};  // waits for the callback
}

}  // namespace
}  // namespace trinco::test
