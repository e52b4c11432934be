#include "core/breaker/window.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/core/property.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

TEST(TimeWindow, SlowOnesCountAsSuccessAndFailureToo) {
    time_window w(1s, 10, 1);
    for (int what = 0; what < 6; ++what) w.add(0, 0ns, static_cast<counter>(what));
    const counts each{2, 2, 1, 1, 1, 1};
    EXPECT_EQ(w.sum(0, 0ns), each);
    EXPECT_EQ(w.totals(), each);
}

TEST(TimeWindow, OldCallsLeaveOneSliceAtATimeAtItsEdge) {
    time_window w(1s, 10, 1);
    EXPECT_TRUE(w.add(0, 99'999'999ns, counter::failure));
    EXPECT_TRUE(w.add(0, 100ms, counter::failure));
    EXPECT_FALSE(w.add(0, 199'999'999ns, counter::failure));
    EXPECT_EQ(w.sum(0, 999'999'999ns).failure, 3U);
    EXPECT_EQ(w.sum(0, 1s).failure, 2U);
    EXPECT_EQ(w.sum(0, 1'099'999'999ns).failure, 2U);
    EXPECT_EQ(w.sum(0, 1'100ms).failure, 0U);
    EXPECT_EQ(w.totals().failure, 3U);
}

TEST(TimeWindow, ACellIsEmptyForItsNextSlice) {
    time_window w(1s, 10, 1);
    w.add(0, 0ns, counter::failure);
    EXPECT_TRUE(w.add(0, 1s, counter::success));
    EXPECT_EQ(w.sum(0, 1s), (counts{.success = 1}));
    EXPECT_EQ(w.sum(0, 5s), counts{});
    EXPECT_EQ(w.totals(), (counts{.success = 1, .failure = 1}));
}

TEST(TimeWindow, AStepBackCountsIntoTheNewestSlice) {
    time_window w(1s, 10, 1);
    w.add(0, 5s, counter::failure);
    EXPECT_FALSE(w.add(0, 1s, counter::failure));
    EXPECT_EQ(w.sum(0, 1s).failure, 2U);
    EXPECT_EQ(w.sum(0, 5s).failure, 2U);
    EXPECT_EQ(w.sum(0, 6s).failure, 0U);
}

TEST(TimeWindow, AnyOriginOfTimeWillDo) {
    for (const auto origin :
         {std::chrono::nanoseconds(-3600s), 0ns, -1ns, std::chrono::nanoseconds(100h * 24 * 365),
          std::chrono::nanoseconds(-100h * 24 * 365)}) {
        time_window w(1s, 10, 1);
        w.add(0, origin, counter::success);
        w.add(0, origin + 950ms, counter::success);
        EXPECT_EQ(w.sum(0, origin + 1100ms).success, 1U) << origin.count();
        EXPECT_EQ(w.sum(0, origin + 3s).success, 0U) << origin.count();
    }
}

TEST(TimeWindow, SlicesBeforeTheOriginAreAsLongAsOthers) {
    time_window w(1s, 10, 1);
    w.add(0, -150ms, counter::failure);
    w.add(0, -50ms, counter::success);
    EXPECT_EQ(w.sum(0, 799ms), (counts{.success = 1, .failure = 1}));
    EXPECT_EQ(w.sum(0, 800ms), (counts{.success = 1}));
    EXPECT_EQ(w.sum(0, 899ms), (counts{.success = 1}));
    EXPECT_EQ(w.sum(0, 900ms), counts{});
}

TEST(TimeWindow, BanksAreSeparate) {
    time_window w(1s, 10, 2);
    w.add(0, 0ns, counter::failure);
    w.add(1, 0ns, counter::success);
    EXPECT_EQ(w.sum(0, 0ns), (counts{.failure = 1}));
    EXPECT_EQ(w.sum(1, 0ns), (counts{.success = 1}));
    EXPECT_EQ(w.sum(3, 0ns), (counts{.success = 1})) << "the bank of a generation is its parity";
    EXPECT_EQ(w.clear(0), (counts{.failure = 1}));
    EXPECT_TRUE(w.sum(0, 0ns).empty());
    EXPECT_EQ(w.sum(1, 0ns), (counts{.success = 1}));
    EXPECT_TRUE(w.add(0, 0ns, counter::failure)) << "a cleared slice is entered anew";
    EXPECT_EQ(w.totals(), (counts{.success = 1, .failure = 2}));
}

TEST(TimeWindow, AHarvestHoldsWhatIsNewByAge) {
    time_window w(1s, 10, 1);
    w.add(0, 50ms, counter::failure);
    w.add(0, 250ms, counter::success);
    auto h = w.harvest(0, 260ms);
    ASSERT_EQ(h.slices.size(), 2U);
    EXPECT_EQ(h.slices[0].n, (counts{.failure = 1}));
    EXPECT_EQ(h.slices[0].age, 160ms);
    EXPECT_EQ(h.slices[1].n, (counts{.success = 1}));
    EXPECT_EQ(h.slices[1].age, 0ms);
    EXPECT_TRUE(h.expired.empty());

    w.add(0, 270ms, counter::success);
    h = w.harvest(0, 280ms);
    ASSERT_EQ(h.slices.size(), 1U);
    EXPECT_EQ(h.slices[0].n, (counts{.success = 1}));
    EXPECT_TRUE(w.harvest(0, 290ms).slices.empty());
    EXPECT_EQ(w.sum(0, 290ms).success, 2U) << "a harvest takes nothing away";
}

TEST(TimeWindow, WhatLeftTheWindowUnharvestedIsExpired) {
    time_window w(1s, 10, 1);
    w.add(0, 0ns, counter::failure);
    w.add(0, 100ms, counter::failure);
    w.add(0, 1s, counter::success);  // enters the cell of the first
    const auto h = w.harvest(0, 1'150ms);
    ASSERT_EQ(h.slices.size(), 1U);
    EXPECT_EQ(h.slices[0].n, (counts{.success = 1}));
    EXPECT_EQ(h.expired, (counts{.failure = 2}));
}

TEST(TimeWindow, ClearReturnsOnlyWhatWasNotHarvested) {
    time_window w(1s, 10, 1);
    w.add(0, 0ns, counter::failure);
    (void)w.harvest(0, 0ns);
    w.add(0, 0ns, counter::success);
    EXPECT_EQ(w.clear(0), (counts{.success = 1}));
    EXPECT_TRUE(w.clear(0).empty());
    EXPECT_TRUE(w.harvest(0, 0ns).slices.empty());
}

struct event {
    unsigned bank;
    std::int64_t slice;
    counter what;
    bool live = true;  // not cleared
    bool harvested = false;
};

// The window as a list of everything that happened.
struct reference {
    std::int64_t length;
    std::int64_t slices;
    std::vector<event> events;

    std::int64_t at(coarse_time now) const {
        std::int64_t slice = now.count() / length;  // tests of this kind start at 0
        for (const auto& e : events) slice = std::max(slice, e.slice);
        return slice;
    }
    bool inside(const event& e, coarse_time now) const { return e.slice > at(now) - slices; }
    counts sum(unsigned bank, coarse_time now) const {
        counts n;
        for (const auto& e : events) {
            if (e.live && e.bank == bank && inside(e, now)) n += counts_of(e.what);
        }
        return n;
    }
};

TEST(TimeWindow, EqualsTheListOfAllEvents) {
    EXPECT_TRUE(test::holds("time_window against a list", 3000, [] {
        const auto slices = *rc::gen::inRange<std::uint32_t>(2, 12);
        time_window w(1s, slices, 2);
        reference all{1'000'000'000 / slices, slices, {}};
        coarse_time now(0);
        for (const auto& [kind, arg] : *rc::gen::container<std::vector<std::pair<int, int>>>(
                 rc::gen::pair(rc::gen::inRange(0, 20), rc::gen::inRange(0, 1'000)))) {
            const unsigned bank = static_cast<unsigned>(arg) & 1U;
            if (kind < 4) now += arg * 300us;
            if (kind == 4) now += arg * 2ms;
            if (kind == 5) now = coarse_time((now.count() / all.length + 1) * all.length);
            if (kind == 6) now = std::max(coarse_time(0), now - arg * 1ms);
            if (kind > 6 && kind < 17) {
                const auto slice = all.at(now);
                w.add(bank, now, static_cast<counter>(arg % 6));
                all.events.push_back({bank, slice, static_cast<counter>(arg % 6)});
            }
            if (kind == 17) {
                counts left;
                for (auto& e : all.events) {
                    if (e.bank != bank) continue;
                    if (!e.harvested) left += counts_of(e.what);
                    e.live = false;
                    e.harvested = true;
                }
                RC_ASSERT(w.clear(bank) == left);
            }
            if (kind == 18) {
                std::map<std::int64_t, counts> fresh;
                counts expired;
                for (auto& e : all.events) {
                    if (e.bank != bank || e.harvested) continue;
                    (all.inside(e, now) ? fresh[e.slice] : expired) += counts_of(e.what);
                    e.harvested = true;
                }
                const auto h = w.harvest(bank, now);
                RC_ASSERT(h.expired == expired);
                RC_ASSERT(h.slices.size() == fresh.size());
                std::size_t i = 0;
                for (const auto& [slice, n] : fresh) {
                    const auto age = now - coarse_time((slice + 1) * all.length);
                    RC_ASSERT(h.slices[i].n == n);
                    RC_ASSERT(h.slices[i++].age == std::max(coarse_time(0), age));
                }
            }
            RC_ASSERT(w.sum(0, now) == all.sum(0, now));
            RC_ASSERT(w.sum(1, now) == all.sum(1, now));
        }
        counts total;
        for (const auto& e : all.events) total += counts_of(e.what);
        RC_ASSERT(w.totals() == total);
    }));
}

}  // namespace
}  // namespace trinco::detail
