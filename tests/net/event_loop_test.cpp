// The real loop on real time. Ops are declared before their loop: they end on its thread or after
// it. Waits are on condition variables with a generous bound: a test that passes takes
// milliseconds.
#include "net/event_loop.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 10s;  // after which a test has failed

// Set once, waited for.
class signal_flag {
public:
    void set() {
        const std::lock_guard hold(m_);
        set_ = true;
        changed_.notify_all();
    }
    [[nodiscard]] bool wait(std::chrono::milliseconds bound = patience) {
        std::unique_lock hold(m_);
        return changed_.wait_for(hold, bound, [this] { return set_; });
    }

private:
    std::mutex m_;
    std::condition_variable changed_;
    bool set_ = false;
};

// Runs f on the loop and fails the test when it does not come to it.
template <class F>
void on_loop(event_loop& on, F f) {
    ASSERT_EQ(run_and_wait(on, patience, std::move(f)), std::error_code());
}

TEST(event_loop, posts_run_in_order_on_one_thread) {
    event_loop on;
    std::vector<int> seen;
    std::set<std::thread::id> threads;
    for (int i = 0; i < 100; ++i) on.post([&, i] { seen.push_back(i); });  // before the start
    on.start();
    for (int i = 100; i < 1'000; ++i) {
        on.post([&, i] {
            seen.push_back(i);
            threads.insert(std::this_thread::get_id());
        });
    }
    on_loop(on, [] {});
    ASSERT_EQ(seen.size(), 1'000U);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(threads.size(), 1U);
    EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(event_loop, runs_on_the_thread_of_its_owner_until_that_has_enough) {
    event_loop on;
    std::vector<int> seen;
    std::set<std::thread::id> threads;
    const auto note = [&](int n) {
        seen.push_back(n);
        threads.insert(std::this_thread::get_id());
    };
    on.post([&] { note(1); });
    const op timer = on.after(1ms, [&] {
        note(2);
        on.post([&] { note(3); });
        on.post([&] { note(4); });
    });
    std::thread other;
    on.post([&] { other = std::thread([&] { on.post([&] { note(5); }); }); });
    EXPECT_TRUE(on.run_here([&] { return seen.size() == 5; }, on.now() + patience));
    other.join();
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()), (std::set<int>{1, 2, 3, 4, 5}));
    EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(event_loop, runs_here_what_is_ready_and_waits_no_longer_than_told) {
    event_loop on;
    int ran = 0;
    on.post([&] { on.post([&] { ++ran; }); });
    const op later = on.after(1h, [&] { ran += 100; });
    EXPECT_FALSE(on.run_here([] { return false; }, on.now()));
    EXPECT_EQ(ran, 1);
    const auto began = on.now();
    EXPECT_FALSE(on.run_here([] { return false; }, began + 20ms));
    EXPECT_GE(on.now(), began + 20ms);
    EXPECT_TRUE(on.run_here([] { return true; }, on.now() + patience));
    EXPECT_EQ(ran, 1);
}

TEST(event_loop, a_thread_goes_on_where_its_owner_stopped) {
    event_loop on;
    on.post([] {});
    EXPECT_FALSE(on.run_here([] { return false; }, on.now()));
    signal_flag fired;
    std::thread::id by;
    op timer = on.after(1ms, [&] {
        by = std::this_thread::get_id();
        fired.set();
    });
    on.start();
    EXPECT_FALSE(on.run_here([] { return false; }, on.now() + 10ms));  // not here any more
    EXPECT_TRUE(fired.wait());
    EXPECT_NE(by, std::this_thread::get_id());
    on_loop(on, [&] { timer.cancel(); });
    EXPECT_TRUE(on.stop(patience));
    EXPECT_FALSE(on.run_here([] { return false; }, on.now() + patience));
}

TEST(event_loop, a_post_within_a_post_runs_later_and_after_what_waits) {
    event_loop on;
    std::vector<std::string> seen;
    signal_flag done;
    on.post([&] {
        on.post([&] {
            seen.push_back("inner");
            done.set();
        });
        seen.push_back("outer");
    });
    on.post([&] { seen.push_back("second"); });
    on.start();
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(seen, (std::vector<std::string>{"outer", "second", "inner"}));
}

TEST(event_loop, posts_of_eight_threads_all_run_each_threads_in_order) {
    constexpr int threads = 8;
    constexpr int each = 5'000;
    event_loop on;
    on.start();
    std::vector<std::vector<int>> seen(threads);
    {
        std::vector<std::jthread> posters;
        for (int t = 0; t < threads; ++t) {
            posters.emplace_back([&, t] {
                for (int i = 0; i < each; ++i) {
                    on.post([&seen, t, i] { seen[static_cast<std::size_t>(t)].push_back(i); });
                }
            });
        }
    }
    on_loop(on, [] {});
    for (const auto& of_one : seen) {
        EXPECT_EQ(of_one.size(), static_cast<std::size_t>(each));
        EXPECT_TRUE(std::is_sorted(of_one.begin(), of_one.end()));
    }
}

TEST(event_loop, timers_fire_in_the_order_of_their_deadlines_and_not_early) {
    std::vector<op> ops;
    event_loop on;
    const auto begin = on.now();
    struct fired {
        int which;
        boot_clock::time_point at;
    };
    std::vector<fired> seen;
    signal_flag done;
    // Far, near enough to be waited for by the wait itself, and nearer than that.
    for (const int us : {30'000, 10'000, 2'500, 20'000, 3'000, 10'000, 700, 40'000}) {
        ops.push_back(on.at(begin + us * 1us, [&, us] {
            seen.push_back({us, on.now()});
            if (us == 40'000) done.set();
        }));
    }
    on.start();
    ASSERT_TRUE(done.wait());
    ASSERT_EQ(seen.size(), 8U);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end(),
                               [](const fired& a, const fired& b) { return a.which < b.which; }));
    for (const auto& one : seen) EXPECT_GE(one.at, begin + one.which * 1us);
    on.stop(patience);
}

TEST(event_loop, an_earlier_timer_set_later_is_not_late) {
    op far;
    op near;
    event_loop on;
    on.start();
    signal_flag done;
    on_loop(on, [&] { far = on.after(1h, [] { FAIL() << "an hour has not passed"; }); });
    on_loop(on, [&] { near = on.after(1ms, [&] { done.set(); }); });
    EXPECT_TRUE(done.wait());
    on_loop(on, [&] { far.cancel(); });
}

TEST(event_loop, a_timer_for_the_past_runs_soon_but_never_inside_the_call) {
    op past;
    event_loop on;
    on.start();
    bool inside = true;
    bool ran_inside = false;
    signal_flag done;
    on_loop(on, [&] {
        past = on.at(boot_clock::time_point{}, [&] {
            ran_inside = inside;
            done.set();
        });
        inside = false;
    });
    ASSERT_TRUE(done.wait());
    EXPECT_FALSE(ran_inside);
}

TEST(event_loop, a_stream_of_timers_for_the_past_starves_neither_posts_nor_due_timers) {
    op stream;
    op due;
    event_loop on;
    signal_flag timer_ran;
    bool go_on = true;
    const auto restart = [&](auto& self) -> void {
        if (go_on) stream = on.at(boot_clock::time_point{}, [&] { self(self); });
    };
    due = on.after(2ms, [&] { timer_ran.set(); });
    restart(restart);
    on.start();
    EXPECT_TRUE(timer_ran.wait());
    on_loop(on, [&] { go_on = false; });  // a post gets its turn as well
}

TEST(event_loop, ending_an_op_cancels_its_timer_also_within_callbacks) {
    op a;
    op b;
    op c;
    event_loop on;
    std::vector<std::string> seen;
    signal_flag done;
    const auto when = on.now() + 1ms;
    a = on.at(when, [&] {
        seen.push_back("a");
        b.cancel();  // due in the same turn
        a.cancel();  // its own
    });
    b = on.at(when, [&] { seen.push_back("b"); });
    c = on.at(when + 1ms, [&] {
        seen.push_back("c");
        done.set();
    });
    on.start();
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(seen, (std::vector<std::string>{"a", "c"}));
    on.stop(patience);
}

TEST(event_loop, assigning_an_op_ends_the_timer_before) {
    op one;
    event_loop on;
    on.start();
    int fired = 0;
    signal_flag done;
    on_loop(on, [&] {
        one = on.after(1ms, [&] { fired += 1; });
        one = on.after(2ms, [&] {
            fired += 10;
            done.set();
        });
    });
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(fired, 10);
}

// The system's timer is set anew when the one that it was set for is cancelled.
TEST(event_loop, cancelling_the_earliest_timer_delays_none_that_is_set_later) {
    op earliest;
    op later;
    op far;
    event_loop on;
    on.start();
    signal_flag done;
    on_loop(on, [&] {
        far = on.after(1h, [] { FAIL() << "an hour has not passed"; });
        earliest = on.after(10ms, [] { FAIL() << "it was cancelled"; });
        earliest.cancel();
        later = on.after(20ms, [&] { done.set(); });
    });
    EXPECT_TRUE(done.wait());
    on_loop(on, [&] { far.cancel(); });
}

TEST(event_loop, thousands_of_timers_half_of_them_cancelled) {
    constexpr int all = 20'000;
    std::vector<op> ops(all);
    event_loop on;
    std::vector<int> fired;  // by the place of the deadline
    int early = 0;
    int left = all / 2;
    signal_flag done;
    const auto begin = on.now() + 200ms;
    for (int i = 0; i < all; ++i) {
        const int place = (i * 7'919) % all;  // deadlines in no order, all different
        const auto when = begin + std::chrono::microseconds(place);
        ops[static_cast<std::size_t>(place)] = on.at(when, [&, when, place] {
            fired.push_back(place);
            if (on.now() < when) ++early;
            if (--left == 0) done.set();
        });
    }
    for (int place = 0; place < all; place += 2) ops[static_cast<std::size_t>(place)].cancel();
    const bool in_time = on.now() < begin;  // else the late ones count as set for now
    on.start();
    ASSERT_TRUE(done.wait());
    on.stop(patience);
    ASSERT_EQ(fired.size(), static_cast<std::size_t>(all / 2));
    EXPECT_TRUE(std::all_of(fired.begin(), fired.end(), [](int place) { return place % 2 == 1; }));
    EXPECT_TRUE(!in_time || std::is_sorted(fired.begin(), fired.end()));
    EXPECT_EQ(early, 0);
}

TEST(event_loop, stop_destroys_what_is_pending_without_running_it_on_the_loops_thread) {
    event_loop on;
    struct witness {
        explicit witness(std::atomic<int>& n) : destroyed(n) {}
        witness(const witness&) = delete;
        ~witness() { ++destroyed; }
        std::atomic<int>& destroyed;
    };
    std::atomic<int> destroyed = 0;
    std::atomic<int> ran = 0;
    signal_flag inside;
    signal_flag go_on;
    on.start();
    on.post([&] {
        inside.set();
        EXPECT_TRUE(go_on.wait());
    });
    on.post([&ran, w = std::make_unique<witness>(destroyed)] { ++ran; });
    ASSERT_TRUE(inside.wait());
    on.post([&ran, w = std::make_unique<witness>(destroyed)] { ++ran; });
    EXPECT_FALSE(on.stop(1ms));  // a callback still runs: the bound holds
    EXPECT_EQ(on.check(), errc::shut_down);
    go_on.set();
    EXPECT_TRUE(on.stop(patience));
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(destroyed, 2);
    on.post([&ran, w = std::make_unique<witness>(destroyed)] { ++ran; });
    EXPECT_EQ(destroyed, 3);
    EXPECT_EQ(ran, 0);
}

TEST(event_loop, an_op_may_outlive_its_loop) {
    std::optional<event_loop> on(std::in_place);
    on->start();
    op late;
    on_loop(*on, [&] { late = on->after(1h, [] {}); });
    on.reset();
    late.cancel();
    EXPECT_FALSE(on.has_value());
}

TEST(event_loop, its_last_owner_may_be_one_of_its_own_callbacks) {
    auto on = std::make_shared<event_loop>();
    const auto destroyed = std::make_shared<signal_flag>();
    struct witness {
        explicit witness(std::shared_ptr<signal_flag> f) : flag(std::move(f)) {}
        witness(witness&&) = default;
        ~witness() {
            if (flag) flag->set();
        }
        std::shared_ptr<signal_flag> flag;
    };
    on->start();
    auto& loop_itself = *on;
    signal_flag handed_over;
    loop_itself.post([&handed_over, mine = std::move(on), w = witness(destroyed)]() mutable {
        handed_over.set();
        mine.reset();
    });
    EXPECT_TRUE(handed_over.wait());
    EXPECT_TRUE(destroyed->wait());
}

TEST(event_loop, a_callback_that_throws_is_reported_and_the_loop_goes_on) {
    op timer;
    event_loop on;
    on.start();
    testing::internal::CaptureStderr();
    on.post([] { throw std::runtime_error("planted"); });
    signal_flag done;
    on_loop(on, [&] {
        timer = on.after(0ms, [&] {
            done.set();
            throw 42;
        });
    });
    EXPECT_TRUE(done.wait());
    on_loop(on, [] {});
    on.stop(patience);
    const auto said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("a callback of the event loop failed: planted\n"), std::string::npos);
    EXPECT_NE(said.find("a callback of the event loop failed\n"), std::string::npos);
}

TEST(event_loop, random_numbers_differ_within_and_between_loops) {
    std::set<std::uint64_t> seen;
    event_loop a;
    event_loop b;
    for (int i = 0; i < 100; ++i) {
        seen.insert(a.random());
        seen.insert(b.random());
    }
    EXPECT_EQ(seen.size(), 200U);
}

TEST(event_loop, run_and_wait_gives_up_in_time_and_says_why) {
    event_loop on;
    on.start();
    signal_flag go_on;
    on.post([&] { EXPECT_TRUE(go_on.wait()); });
    EXPECT_EQ(run_and_wait(on, 1ms, [] {}), errc::unknown_outcome);
    // A loop that is stopped while somebody waits for it tells him at once.
    signal_flag told;
    std::jthread waiter([&] {
        EXPECT_EQ(run_and_wait(on, patience, [] {}), errc::shut_down);
        told.set();
    });
    EXPECT_FALSE(told.wait(1ms));
    EXPECT_FALSE(on.stop(0ms));
    go_on.set();
    EXPECT_TRUE(told.wait());
    EXPECT_TRUE(on.stop(patience));
    EXPECT_EQ(run_and_wait(on, patience, [] {}), errc::shut_down);
}

TEST(event_loop, in_a_child_it_says_forked_and_does_no_harm) {
    auto on = std::make_unique<event_loop>();
    on->start();
    op timer;
    on_loop(*on, [&] { timer = on->after(1h, [] {}); });
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const bool told = on->check() == errc::forked;
        on->post([] { ::_exit(3); });
        timer.cancel();
        const bool stops = on->stop(0ms);
        const bool refused = run_and_wait(*on, 1ms, [] {}) == errc::forked;
        on.reset();  // neither waits for the thread nor ends the parent's descriptors
        ::_exit(told && stops && refused ? 0 : 4);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    // The parent's timers still fire.
    signal_flag done;
    on_loop(*on, [&] { timer = on->after(1ms, [&] { done.set(); }); });
    EXPECT_TRUE(done.wait());
}

}  // namespace
}  // namespace trinco::detail
