// Whose options fleet_sync tells the store: the process's own, or those that govern.
#include <gtest/gtest.h>

#include "core/breaker/policy.hpp"
#include "fleet_sync_fixture.hpp"

namespace {

using namespace trinco::detail;

TEST(FleetSyncOptions, ItsOwnAreToldUntilTheyHaveAStamp) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(101ms);
    port.add(1, 0);
    w.run(101ms);
    const auto sent = w.store.sent_of("b");
    ASSERT_EQ(2U, sent.size());
    EXPECT_EQ(to_text(policy_of(w.options)), sent[0].options);
    EXPECT_EQ(0U, sent[0].own_stamp);
    EXPECT_EQ("", sent[1].options);
    EXPECT_EQ(7U, sent[1].own_stamp);
}

TEST(FleetSyncOptions, AStoreThatKnowsNobodysIsToldItsOwnAgainAtOnce) {
    sync_world w;
    remembering_port port;
    const auto m = w.join("b", port);
    w.run(101ms);
    bool has_lost = true;
    w.store.on_news = [&](const news& n) {
        verdict v = w.store.plain(n);
        if (n.own_stamp != 0 && has_lost) {
            v.own_stamp = 0;
            v.options = "quorum=9";  // set by an operator
        }
        return v;
    };
    port.add(1, 0);
    w.run(300ms);
    const auto sent = w.store.sent_of("b");
    ASSERT_EQ(3U, sent.size()) << "and no more: nothing is new";
    EXPECT_EQ(0U, sent[2].own_stamp);
    EXPECT_EQ(to_text(policy_of(w.options)), sent[2].options);
    has_lost = false;
    port.add(1, 0);
    w.run(101ms);
    EXPECT_EQ(7U, w.store.sent_of("b").back().own_stamp);
}

}  // namespace
