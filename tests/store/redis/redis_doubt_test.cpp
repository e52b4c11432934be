// What the store says of requests that have no answer.
#include <gtest/gtest.h>

#include "redis_breakers_fixture.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

// Behind Sentinels: first a replica answers, then there is no way for another reason.
TEST_F(RedisBreakers, a_refusal_is_an_answer_also_when_the_way_is_lost_behind_it) {
    const auto g = exchange({news_of("a")}, 1h);
    EXPECT_TRUE(store_->in_doubt());
    route_->answer_error("READONLY You can't write against a read only replica.");
    EXPECT_FALSE(store_->in_doubt());
    route_->change(event_kind::down, {errc::unavailable, "no Sentinel names a primary"});
    EXPECT_EQ(store_->standing(), store_standing::away);
    EXPECT_FALSE(store_->in_doubt());
    pass(1s);
    ASSERT_EQ(route_->open.size(), 1U);
    EXPECT_TRUE(store_->in_doubt()) << "it was sent again";
    route_->fail(errc::unknown_outcome);
    ASSERT_EQ(route_->open.size(), 1U);
    route_->answer_error("READONLY You can't write against a read only replica.");
    EXPECT_TRUE(store_->in_doubt()) << "of the time before";
}

}  // namespace
}  // namespace trinco::detail::test
