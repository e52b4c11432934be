// The order of timers, beside a plain sorted list.
#include "net/timer_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using key = timer_queue::key;

boot_clock::time_point at(int n) {
    return boot_clock::time_point(n * 1ms);
}

TEST(TimerQueue, gives_them_by_their_time_and_those_of_one_time_as_they_were_set) {
    timer_queue queue;
    EXPECT_TRUE(queue.empty());
    std::vector<int> ran;
    int which = 0;
    for (const int when : {5, 3, 5, 9, 3, 1, 1}) {
        queue.put(at(when), [&ran, n = when * 10 + which] { ran.push_back(n); });
        ++which;
    }
    while (!queue.empty()) queue.take_earliest()();
    EXPECT_EQ(ran, (std::vector{15, 16, 31, 34, 50, 52, 93}));
}

TEST(TimerQueue, what_was_taken_is_not_there_any_more) {
    timer_queue queue;
    const auto first = queue.put(at(1), [] {});
    const auto second = queue.put(at(2), [] {});
    EXPECT_TRUE(queue.take(second));
    EXPECT_FALSE(queue.take(second));
    EXPECT_EQ(queue.earliest(), first);
    EXPECT_TRUE(queue.take(first));
    EXPECT_FALSE(queue.take(first));
    EXPECT_TRUE(queue.empty());
    // Of the same time, but another one.
    const auto again = queue.put(at(1), [] {});
    EXPECT_NE(again, first);
    EXPECT_FALSE(queue.take(first));
}

TEST(TimerQueue, is_as_a_sorted_list_whatever_is_put_and_taken) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
        timer_queue queue;
        std::vector<key> known;
        key ran{};
        for (int step = 0; step < 500; ++step) {
            const auto what = below(seed % 2 == 0 ? 5 : 3);  // few, or ever more
            if (what < 2 || known.empty()) {
                const auto order = queue.next_order();
                const auto k = queue.put(at(static_cast<int>(below(30))), [&ran, &queue, order] {
                    ran.order = order;
                    EXPECT_GT(queue.next_order(), order);
                });
                ASSERT_EQ(k.order, order);
                known.insert(std::upper_bound(known.begin(), known.end(), k), k);
            } else if (what < 4) {
                queue.take_earliest()();
                ASSERT_EQ(ran.order, known.front().order) << "seed " << seed;
                known.erase(known.begin());
            } else {
                const auto which = known.begin() + static_cast<std::ptrdiff_t>(below(known.size()));
                auto f = queue.take(*which);
                ASSERT_TRUE(f) << "seed " << seed;
                f();
                ASSERT_EQ(ran.order, which->order) << "seed " << seed;
                known.erase(which);
            }
            ASSERT_EQ(queue.empty(), known.empty()) << "seed " << seed;
            if (known.empty()) continue;
            ASSERT_EQ(queue.earliest(), known.front()) << "seed " << seed;
        }
        for (const auto& k : known) {
            queue.take_earliest()();
            ASSERT_EQ(ran.order, k.order) << "seed " << seed;
        }
        EXPECT_TRUE(queue.empty());
    }
}

}  // namespace
}  // namespace trinco::detail::test
