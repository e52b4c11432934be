#include "sim/world.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using trinco::sim::world;

TEST(World, RunsEventsByTimeThenByOrder) {
    world w(1);
    auto& n = w.add_node("n");
    std::string seen;
    auto late = n.at(n.now() + 2s, [&] { seen += 'c'; });
    auto soon = n.at(n.now() + 1s, [&] { seen += 'b'; });
    n.post([&] { seen += 'a'; });
    w.run_for(2s);
    EXPECT_EQ(seen, "abc");
}

TEST(World, PostedComesAfterWhatWasDueBefore) {
    world w(1);
    auto& n = w.add_node("n");
    std::string seen;
    auto a = n.at(n.now() + 1s, [&] {
        seen += 'a';
        n.post([&] { seen += 'd'; });
        n.post_first([&] { seen += 'b'; });
    });
    auto c = n.at(n.now() + 1s, [&] { seen += 'c'; });
    w.run_for(1s);
    EXPECT_EQ(seen, "abcd");
}

TEST(World, DestroyedOpNeverRuns) {
    world w(1);
    auto& n = w.add_node("n");
    bool ran = false;
    {
        auto dropped = n.at(n.now() + 1s, [&] { ran = true; });
    }
    // A timer that takes over the free place must not be cancelled by the old op.
    bool other = false;
    auto kept = n.at(n.now() + 1s, [&] { other = true; });
    w.run_for(2s);
    EXPECT_FALSE(ran);
    EXPECT_TRUE(other);
}

TEST(World, OldOpDoesNotCancelTheNextUserOfItsSlot) {
    world w(1);
    auto& n = w.add_node("n");
    auto first = n.at(n.now() + 1s, [] {});
    w.run_for(1s);
    bool ran = false;
    auto second = n.at(n.now() + 1s, [&] { ran = true; });
    first.cancel();
    w.run_for(1s);
    EXPECT_TRUE(ran);
}

TEST(World, PausedNodeCatchesUpInOrder) {
    world w(1);
    auto& n = w.add_node("n");
    std::vector<int> seen;
    auto a = n.at(n.now() + 1s, [&] { seen.push_back(1); });
    auto b = n.at(n.now() + 2s, [&] { seen.push_back(2); });
    n.pause_until(n.now() + 5s);
    w.run_for(4s);
    EXPECT_TRUE(seen.empty());
    w.run_for(1s);
    EXPECT_EQ(seen, (std::vector{1, 2}));
}

TEST(World, KilledNodeRunsNothing) {
    world w(1);
    auto& n = w.add_node("n");
    bool ran = false;
    n.post([&] { ran = true; });
    n.kill();
    w.run_for(1s);
    EXPECT_FALSE(ran);
}

TEST(World, MirroredClockIsInStepWithEachEvent) {
    world w(1);
    std::atomic<std::int64_t> clock{0};
    w.mirror_clock(clock);
    const auto start = clock.load();
    EXPECT_EQ(start, w.now().time_since_epoch().count());
    std::int64_t seen = 0;
    w.schedule(3s, [&] { seen = clock.load(); });
    w.run_for(5s);
    EXPECT_EQ(seen - start, std::chrono::nanoseconds(3s).count());
    EXPECT_EQ(clock.load() - start, std::chrono::nanoseconds(5s).count());
}

TEST(World, SameSeedSameHistory) {
    const auto run = [](std::uint64_t seed) {
        world w(seed);
        auto& n = w.add_node("n");
        for (int i = 0; i < 100; ++i) {
            w.schedule(w.between(0s, 10s), [&w, &n] { w.note(std::to_string(n.random())); });
        }
        w.run_for(10s);
        return w.digest();
    };
    EXPECT_EQ(run(7), run(7));
    EXPECT_NE(run(7), run(8));
}

}  // namespace
