#include "core/breaker/count_window.hpp"

#include <gtest/gtest.h>

#include "tests/core/property.hpp"

namespace trinco::detail {
namespace {

TEST(CountWindow, TheNextCallPushesTheFirstOneOut) {
    count_window w(3);
    w.add(counter::failure);
    w.add(counter::slow_success);
    w.add(counter::success);
    EXPECT_EQ(w.sum().failure, 1U);
    EXPECT_EQ(w.sum().judged(), 3U);
    w.add(counter::success);
    EXPECT_EQ(w.sum().failure, 0U);
    EXPECT_EQ(w.sum().slow_success, 1U);
    EXPECT_EQ(w.sum().judged(), 3U);
}

TEST(CountWindow, IgnoredAndRejectedPushNothingOut) {
    count_window w(1);
    w.add(counter::failure);
    w.add(counter::ignored);
    w.add(counter::rejected);
    EXPECT_EQ(w.sum().failure, 1U);
}

TEST(CountWindow, OfNoCallsKeepsNothing) {
    count_window w(0);
    w.add(counter::failure);
    EXPECT_TRUE(w.sum().empty());
}

TEST(CountWindow, IsTheSumOfTheLastCalls) {
    EXPECT_TRUE(test::holds("count_window against a list", 2000, [](const std::vector<int>& seeds) {
        const auto size = *rc::gen::inRange<std::uint32_t>(1, 20);
        count_window w(size);
        std::vector<counter> all;
        for (const int seed : seeds) {
            const auto kind = static_cast<unsigned>(seed) % 20;
            if (kind == 19) {
                w.clear();
                all.clear();
                continue;
            }
            const auto what = static_cast<counter>(kind % 6);
            w.add(what);
            if (what < counter::ignored) all.push_back(what);
            counts expected;
            for (std::size_t i = all.size() < size ? 0 : all.size() - size; i < all.size(); ++i) {
                expected += counts_of(all[i]);
            }
            RC_ASSERT(w.sum() == expected);
        }
    }));
}

}  // namespace
}  // namespace trinco::detail
