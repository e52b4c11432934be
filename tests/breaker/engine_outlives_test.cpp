// A store that dies while the fleet is open, and what of its opening is left when it is back.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine_fleet_fixture.hpp"

namespace trinco::detail {
namespace {

// A fleet that was open when its store was lost, and one breaker that has recovered by itself.
class OutlivedFleet : public testing::Test {
protected:
    OutlivedFleet() {
        f.publish(open_view(100, 10s));
        f.store.silent = true;
        (void)f.core->acquire();  // its refusal is news, which nobody takes
        f.run(11s);               // what was left of the fleet's opening; no extra: random is 0
        f.calls(2, outcome::success);
        f.store.on_probe = [this](const probe_request&) {
            return probe_reply{.granted = grants,
                               .retry_after = grants ? 0ms : 10ms,
                               .fleet = f.store.truth["b"],
                               .live = 2};
        };
    }
    // Calls in `d`, one a millisecond, and how many of them were refused.
    int refused_in(boot_clock::duration d, outcome what = outcome::success) {
        int refused = 0;
        for (const auto end = f.now() + d; f.now() < end;) {
            const auto p = f.acquire(10ms);
            if (p && *p) {
                p->settle(what);
            } else {
                ++refused;
            }
            f.run(1ms);
        }
        return refused;
    }
    void store_returns() {
        f.store.silent = false;
        f.store.notify({notice::kind_t::new_server, {}, {}});
        f.run(1s);
    }

    bool grants = true;
    fleet_engine f;
};

TEST_F(OutlivedFleet, GoesOnCallingWhenTheStoreComesBack) {
    EXPECT_EQ(f.core->state(), breaker_state::closed);
    store_returns();
    const auto s = f.core->snapshot();
    EXPECT_FALSE(s.degraded);
    EXPECT_EQ(s.fleet_state, breaker_state::open) << "it never heard of our closing";
    EXPECT_EQ(s.state, breaker_state::closed);
    EXPECT_EQ(refused_in(2s), 0);
    EXPECT_EQ(f.story, (std::vector<std::string>{"closed>open", "store_lost", "open>half_open",
                                                 "half_open>closed", "store_back"}));
}

// During the quarantine after a new server nobody probes; then its calls are the fleet's probes.
TEST_F(OutlivedFleet, OffersItsCallsAsProbes) {
    store_returns();
    EXPECT_EQ(refused_in(5s), 0);
    EXPECT_TRUE(f.store.probes.empty());
    f.run(5s);
    ASSERT_TRUE(f.acquire()->is_probe());
    f.publish(view_of_era(200, breaker_state::half_open));
    grants = false;
    EXPECT_EQ(refused_in(500ms), 0) << "others hold the probes";
    EXPECT_GT(f.store.probes.size(), 10U);
    f.publish(view_of_era(300, breaker_state::closed));
    EXPECT_EQ(refused_in(100ms), 0);
    EXPECT_EQ(f.core->snapshot().fleet_state, breaker_state::closed);
    EXPECT_EQ(f.story.back(), "store_back");
}

TEST_F(OutlivedFleet, StopsWhenTheFleetOpensAgain) {
    store_returns();
    f.publish(view_of_era(200, breaker_state::half_open));
    EXPECT_EQ(refused_in(100ms), 0);
    auto again = open_view(300, 5s);
    again.backoff_level = 1;
    f.publish(again);
    EXPECT_EQ(f.core->acquire().refusal().by, refused_by::fleet_breaker);
    EXPECT_EQ(f.core->state(), breaker_state::open);
    auto probing = view_of_era(400, breaker_state::half_open);
    probing.backoff_level = 1;
    grants = false;
    f.publish(probing);
    EXPECT_FALSE(*f.acquire());
}

// Others have met the dependency meanwhile, and it failed.
TEST_F(OutlivedFleet, ObeysAnOpeningThatItHasNotHeardOf) {
    auto again = view_of_era(200, breaker_state::half_open);
    again.backoff_level = 1;
    f.store.truth["b"] = again;
    grants = false;
    store_returns();
    EXPECT_FALSE(*f.acquire());
    EXPECT_EQ(f.core->state(), breaker_state::half_open);
}

// Others had the store all the time: the fleet has closed and opened again, and now probes.
TEST_F(OutlivedFleet, ObeysTheProbingOfALaterOpening) {
    constexpr era_t longest = 11'000'000;  // open_for and probe_timeout, in microseconds
    f.store.truth["b"] = view_of_era(100 + longest + 1, breaker_state::half_open);
    grants = false;
    store_returns();
    EXPECT_FALSE(*f.acquire());
    EXPECT_EQ(f.core->state(), breaker_state::half_open);
}

TEST_F(OutlivedFleet, GoesOnThroughTheProbingThatOthersHaveBegun) {
    constexpr era_t longest = 11'000'000;
    f.store.truth["b"] = view_of_era(100 + longest, breaker_state::half_open);
    grants = false;
    store_returns();
    EXPECT_EQ(refused_in(100ms), 0);
    EXPECT_EQ(f.core->snapshot().fleet_state, breaker_state::half_open);
}

TEST_F(OutlivedFleet, GoesOnThroughTheProbingHoweverLongTheStoreWasAway) {
    constexpr era_t hour = 3'600'000'000;
    store_returns();  // with the opening of then
    f.publish(view_of_era(100 + hour, breaker_state::half_open));
    grants = false;
    EXPECT_EQ(refused_in(100ms), 0);
    EXPECT_EQ(f.core->snapshot().fleet_state, breaker_state::half_open);
}

TEST_F(OutlivedFleet, StopsWhenItsOwnBreakerOpens) {
    store_returns();
    EXPECT_GT(refused_in(500ms, outcome::failure), 0);
    EXPECT_EQ(f.core->snapshot().local_state, breaker_state::open);
    EXPECT_EQ(f.core->state(), breaker_state::open);
    EXPECT_EQ(f.core->acquire().refusal().by, refused_by::fleet_breaker);
}

TEST_F(OutlivedFleet, StopsWhenItIsSetAside) {
    f.store.on_news = [this](const news& n) {
        auto v = f.store.plain(n);
        v.set_aside = true;
        return v;
    };
    f.store.truth["b"] = view_of_era(200, breaker_state::half_open);
    store_returns();
    grants = false;
    EXPECT_FALSE(*f.acquire());
    f.publish(view_of_era(300, breaker_state::closed));
    EXPECT_EQ(f.core->acquire().refusal().by, refused_by::local_breaker);
}

// The same, when the verdict that says so is that the fleet has closed.
TEST_F(OutlivedFleet, OpensWhenTheFleetClosesWithoutIt) {
    store_returns();
    f.publish(view_of_era(200, breaker_state::half_open));
    EXPECT_EQ(refused_in(50ms), 0);
    f.store.on_news = [this](const news& n) {
        auto v = f.store.plain(n);
        v.set_aside = true;
        return v;
    };
    f.store.truth["b"] = view_of_era(300, breaker_state::closed);
    f.run(1s);
    EXPECT_EQ(f.core->snapshot().fleet_state, breaker_state::closed);
    EXPECT_EQ(f.core->acquire().refusal().by, refused_by::local_breaker);
}

// The store goes again before the fleet could recover: what was outlived does not come back.
TEST_F(OutlivedFleet, OutlivesItOnce) {
    store_returns();
    f.store.silent = true;
    EXPECT_EQ(refused_in(3s), 0);
    EXPECT_TRUE(f.core->snapshot().degraded);
    store_returns();
    EXPECT_EQ(refused_in(1s), 0);
    EXPECT_EQ(f.core->state(), breaker_state::closed);
}

// Whoever has not recovered yet waits for the fleet, as before.
TEST(EngineFleet, AnInheritedOpeningEndsWithTheReturnOfTheStore) {
    fleet_engine f;
    f.publish(open_view(100, 10s));
    f.store.silent = true;
    (void)f.core->acquire();
    f.run(11s);
    f.core->acquire().success();  // one of two probes
    EXPECT_EQ(f.core->state(), breaker_state::half_open);
    f.store.silent = false;
    f.run(3s);
    EXPECT_EQ(f.core->state(), breaker_state::open);
    EXPECT_EQ(f.core->acquire().refusal().by, refused_by::fleet_breaker);
}

TEST(EngineFleet, ObservingRefusesNobodyWhileTheStoreIsLate) {
    fleet_engine f;
    auto v = open_view(100, 100ms);
    v.over = override_kind::observing;
    v.over_remaining = 1h;
    f.publish(v);
    f.run(100ms);
    f.store.silent = true;
    EXPECT_TRUE(f.core->acquire());  // on the loop's thread, which cannot wait
    EXPECT_EQ(f.core->snapshot().would_have_rejected, 1U);
}

}  // namespace
}  // namespace trinco::detail
