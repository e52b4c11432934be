// An opening that is obeyed before it is told.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine_fleet_fixture.hpp"

namespace trinco::detail {
namespace {

TEST(EngineAhead, AForetoldOpeningIsObeyedBeforeItIsTold) {
    fleet_engine f;
    std::vector<event> told;
    f.core->events()->add([&](const event& e) { told.push_back(e); });
    auto under_way = f.core->acquire();
    f.store.truth["b"] = open_view(100, 5s);
    ASSERT_TRUE(f.core->open_ahead({"b", 100, 5s, "drill"}));
    const auto foretold = f.core->clock().precise();
    const auto p = f.core->acquire();
    EXPECT_FALSE(p);
    EXPECT_EQ(p.refusal().by, refused_by::fleet_breaker);
    EXPECT_EQ(p.refusal().reason, refusal_reason::open);
    EXPECT_GT(p.refusal().retry_after, 4900ms);
    f.run(1ms);
    under_way.failure();
    EXPECT_FALSE(f.core->acquire());
    EXPECT_EQ(f.core->state(), breaker_state::open);
    EXPECT_EQ(f.core->snapshot().reason, "drill");
    EXPECT_EQ(f.core->snapshot().fleet_state, breaker_state::open);
    EXPECT_TRUE(f.story.empty());
    f.run(1ms);
    f.publish(open_view(100, 5s));
    EXPECT_EQ(f.story, std::vector<std::string>{"closed>open"});
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].at.time_since_epoch(), foretold);
    EXPECT_FALSE(f.core->acquire());
}

TEST(EngineAhead, AForetoldOpeningEndsWithWhatIsNewer) {
    fleet_engine f;
    auto t = *f.sync->terms_of("b");
    t.fleet = view_of_era(50, breaker_state::closed);
    t.as_of = f.now();
    ASSERT_TRUE(f.core->open_ahead({"b", 100, 5s, "drill"}));
    f.core->adopt(t);  // asked for before
    EXPECT_FALSE(f.core->acquire());
    EXPECT_EQ(f.core->state(), breaker_state::open);
    t.as_of = f.now() + 1ms;  // the server has lost it
    f.core->adopt(t);
    EXPECT_TRUE(f.core->acquire());
    EXPECT_EQ(f.core->state(), breaker_state::closed);
    ASSERT_TRUE(f.core->open_ahead({"b", 100, 5s, "drill"}));
    t.fleet = view_of_era(101, breaker_state::closed);
    t.as_of = f.now();
    f.core->adopt(t);
    EXPECT_TRUE(f.core->acquire());
    EXPECT_TRUE(f.story.empty());
}

TEST(EngineAhead, AForetoldOpeningEndsWithTheStoreAndWithTheFleet) {
    fleet_engine f;
    ASSERT_TRUE(f.core->open_ahead({"b", 100, 50s, "drill"}));
    f.core->store_lost(1, "");
    EXPECT_TRUE(f.core->acquire());
    EXPECT_FALSE(f.core->open_ahead({"b", 101, 50s, "drill"}));
    fleet_engine g;
    ASSERT_TRUE(g.core->open_ahead({"b", 100, 50s, "drill"}));
    g.core->leave_fleet();
    EXPECT_TRUE(g.core->acquire());
}

TEST(EngineAhead, NothingIsForetoldWhereMoreThanTheStateDecides) {
    fleet_engine f;
    auto v = view_of_era(90, breaker_state::closed);
    v.over = override_kind::disabled;
    v.over_remaining = 10s;
    f.publish(v);
    EXPECT_FALSE(f.core->open_ahead({"b", 100, 5s, "drill"}));
    EXPECT_TRUE(f.core->acquire());
    f.publish(open_view(101, 5s));
    EXPECT_FALSE(f.core->open_ahead({"b", 102, 5s, "drill"}));
    auto o = calm();
    o.consistency = consistency::strict;
    fleet_engine strict(o);
    EXPECT_FALSE(strict.core->open_ahead({"b", 100, 5s, "drill"}));
}

}  // namespace
}  // namespace trinco::detail
