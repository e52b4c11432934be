#include "apps/trinco/breakers/why_words.hpp"

#include <gtest/gtest.h>

#include <string>

namespace trinco::program {
namespace {

detail::report opened_by(std::string reason) {
    detail::report r;
    r.breaker = "pay";
    r.now.fleet.state = breaker_state::open;
    r.now.fleet.reason = std::move(reason);
    r.now.live = 7;
    r.options =
        "failure_rate=0.3 minimum_calls=20 window_ms=10000 failure_count=8 "
        "slow_call_rate=0.9 half_open_probes=5 quorum=2";
    return r;
}

TEST(WhyWords, NameTheRuleThatWasBroken) {
    EXPECT_EQ("at least 30 % of at least 20 calls within 10 s had failed, as 2 voters or more saw",
              why_text(opened_by("failure_rate")));
    EXPECT_EQ("at least 90 % of at least 20 calls within 10 s were slow, as 2 voters or more saw",
              why_text(opened_by("slow_call_rate")));
    EXPECT_EQ("at least 8 calls within 10 s had failed, as 2 voters or more saw",
              why_text(opened_by("failure_count")));
    EXPECT_EQ("at least 30 % of its 5 probes failed", why_text(opened_by("probes_failed")));
    EXPECT_EQ("5 probes were never settled: their processes ended",
              why_text(opened_by("probes_vanished")));
}

TEST(WhyWords, AskNoMoreVotersThanThereAre) {
    auto r = opened_by("failure_count");
    for (const std::uint32_t live : {0U, 1U}) {
        r.now.live = live;
        EXPECT_EQ("at least 8 calls within 10 s had failed, as 1 voter or more saw", why_text(r));
    }
}

TEST(WhyWords, SayNothingOfWhatTheyDoNotKnow) {
    EXPECT_EQ("", why_text(opened_by("gateway restarts (by ann@shop)")));
    auto closed = opened_by("failure_rate");
    closed.now.fleet.state = breaker_state::closed;
    EXPECT_EQ("", why_text(closed));
    auto forced = opened_by("failure_rate");
    forced.now.fleet.over = override_kind::forced_open;
    EXPECT_EQ("", why_text(forced));
}

}  // namespace
}  // namespace trinco::program
