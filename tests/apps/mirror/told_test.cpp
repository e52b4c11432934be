// What holds, of what a machine was told and what a server that may have lost it says.
#include <gtest/gtest.h>

#include "apps/trinco/mirror/told.hpp"
#include "core/breaker/record.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::view;

constexpr std::uint64_t noon = 1'800'000'000'000'000;  // µs

view open_since(std::uint64_t era) {
    view v;
    v.era = era;
    v.state = breaker_state::open;
    v.remaining = 10s;
    v.reason = "failure_rate";
    return v;
}

view overridden(override_kind over, std::uint64_t at) {
    view v;
    v.rev = at;
    v.over = over;
    v.over_remaining = 1h;
    v.reason = "by hand";
    return v;
}

TEST(Believed, TheServerWhenItKnowsAsMuchOrMore) {
    view later = open_since(noon + 5);
    later.state = breaker_state::closed;
    EXPECT_EQ(breaker_state::closed, believed(open_since(noon), later).state);
    EXPECT_EQ(noon, believed(open_since(noon), open_since(noon)).era);
    view overruled = open_since(noon);
    overruled.rev = noon + 1;
    EXPECT_EQ(noon + 1, believed(open_since(noon), overruled).rev);
}

TEST(Believed, TheMirrorWhenTheServerIsEmpty) {
    const view v = believed(open_since(noon), view{});
    EXPECT_EQ(breaker_state::open, v.state);
    EXPECT_EQ(noon, v.era);
    EXPECT_EQ("failure_rate", v.reason);
}

TEST(Believed, AnOperatorWhoSpokeAfterTheLoss) {
    view before = open_since(noon);
    before.over = override_kind::forced_open;
    before.over_remaining = 2h;
    before.rev = noon + 1'000;
    const view v = believed(before, overridden(override_kind::disabled, noon + 5'000));
    EXPECT_EQ(breaker_state::open, v.state);
    EXPECT_EQ(override_kind::disabled, v.over);
    EXPECT_EQ(1h, v.over_remaining);
    EXPECT_EQ("by hand", v.reason);
    EXPECT_TRUE(v.newer_than(before));
    // He has ended it again.
    EXPECT_EQ(override_kind::none,
              believed(before, overridden(override_kind::none, noon + 5'000)).over);
}

TEST(Believed, NotAnOperatorWhoSpokeBefore) {
    view before = open_since(noon);
    before.over = override_kind::forced_open;
    before.rev = noon + 1'000;
    EXPECT_EQ(override_kind::forced_open,
              believed(before, overridden(override_kind::disabled, noon + 500)).over);
    // Nor whoever only counts: probes, expiries.
    EXPECT_EQ(override_kind::forced_open,
              believed(before, overridden(override_kind::none, 7)).over);
}

TEST(Believed, ASetSaysNothingOfOverrides) {
    view before = open_since(noon);
    before.over = override_kind::forced_open;
    view now;
    now.rev = noon + 5'000;
    now.options_stamp = noon + 5'001;
    EXPECT_EQ(override_kind::forced_open, believed(before, now).over);
}

// With the record itself, as every store applies it.
TEST(Again, OptionsComeBackAsWhatTheyWere) {
    for (const std::uint64_t stamp : {noon, noon + 1}) {
        detail::fleet_record r;
        detail::effects did;
        const auto text = to_text(detail::policy{});
        const auto n = again("pay", open_since(noon), {text, stamp});
        const auto v = apply(r, {"i", "v"}, n, detail::store_time(noon + 10), did);
        EXPECT_FALSE(v.error);
        EXPECT_EQ(breaker_state::open, v.fleet.state);
        EXPECT_EQ(noon, v.fleet.era);
        EXPECT_EQ(0U, v.fleet.rev);
        EXPECT_EQ(stamp, v.fleet.options_stamp);
        EXPECT_EQ(stamp % 2 == 1, report_of(r, "pay", detail::store_time(noon + 11)).options_set);
    }
}

TEST(Again, UnknownOptionsAreNotTold) {
    const auto n = again("pay", open_since(noon), {});
    EXPECT_TRUE(n.options.empty());
    EXPECT_EQ(0U, n.mine.options_stamp);
}

}  // namespace
}  // namespace trinco::program
