// call(): classifiers, fallbacks, stop tokens.

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

#include "breaker_fixture.hpp"

namespace trinco::test {
namespace {

struct bad_request : std::runtime_error {
    using runtime_error::runtime_error;
};
struct timed_out : std::runtime_error {
    using runtime_error::runtime_error;
};

TEST(Call, ReturnsTheResultAndCountsASuccess) {
    timed_breaker b;
    EXPECT_EQ(b->call([] { return 42; }), 42);
    b->call([] {});
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 2}));
}

TEST(Call, PassesReferencesAndMoveOnlyResultsThrough) {
    timed_breaker b;
    int x = 1;
    int& same = b->call([&]() -> int& { return x; });
    EXPECT_EQ(&same, &x);
    EXPECT_EQ(*b->call([] { return std::make_unique<int>(7); }), 7);
}

TEST(Call, AnExceptionIsAFailureAndGoesOn) {
    timed_breaker b;
    EXPECT_THROW(b->call([]() -> int { throw timed_out("late"); }), timed_out);
    EXPECT_EQ(b->snapshot().totals, (counts{.failure = 1}));
}

TEST(Call, ErrorCodesAndBoolsAreSuccessesUnlessClassified) {
    timed_breaker b;
    (void)b->call([] { return make_error_code(errc::unavailable); });
    EXPECT_FALSE(b->call([] { return false; }));
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 2}));
    const auto rules = classify_results(
        [](const std::error_code& ec) { return ec ? outcome::failure : outcome::success; });
    (void)b->call([] { return make_error_code(errc::unavailable); }, rules);
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 2, .failure = 1}));
}

TEST(Call, TheFirstFittingExceptionHandlerDecides) {
    timed_breaker b;
    const auto rules = classify_exceptions(
        [](const bad_request&) { return outcome::ignored; },
        [](const std::runtime_error& e) {
            return std::string(e.what()) == "fine" ? outcome::success : outcome::failure;
        });
    EXPECT_THROW(b->call([] { throw bad_request("ours"); }, rules), bad_request);
    EXPECT_THROW(b->call([] { throw std::runtime_error("fine"); }, rules), std::runtime_error);
    EXPECT_THROW(b->call([] { throw timed_out("late"); }, rules), timed_out);
    EXPECT_THROW(b->call([] { throw 5; }, rules), int);  // fits none
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 1, .failure = 2, .ignored = 1}));
}

TEST(Call, AHandlerOfExceptionPtrFitsEverything) {
    timed_breaker b;
    const auto rules =
        classify_exceptions([](const std::exception_ptr&) { return outcome::ignored; });
    EXPECT_THROW(b->call([] { throw 5; }, rules), int);
    EXPECT_EQ(b->snapshot().totals, (counts{.ignored = 1}));
}

TEST(Call, ResultsAndExceptionsTogether) {
    timed_breaker b;
    const auto rules = classify(
        classify_results([](int n) { return n < 0 ? outcome::failure : outcome::success; }),
        classify_exceptions([](const bad_request&) { return outcome::ignored; }));
    EXPECT_EQ(b->call([] { return -1; }, rules), -1);
    EXPECT_THROW(b->call([]() -> int { throw bad_request("x"); }, rules), bad_request);
    EXPECT_EQ(b->snapshot().totals, (counts{.failure = 1, .ignored = 1}));
}

TEST(Call, AThrowingClassifierIgnoresTheCall) {
    timed_breaker b;
    const auto rules = classify_results([](int) -> outcome { throw timed_out("rules"); });
    EXPECT_THROW(b->call([] { return 1; }, rules), timed_out);
    EXPECT_EQ(b->snapshot().totals, (counts{.ignored = 1}));
}

TEST(Call, ThrowsWhenRefusedAndSaysWhy) {
    timed_breaker b(quick());
    b.fail(4);
    try {
        b->call([] { FAIL() << "must not run"; });
        FAIL() << "must throw";
    } catch (const breaker_open_error& e) {
        EXPECT_EQ(e.code(), make_error_code(errc::breaker_open));
        EXPECT_EQ(e.refusal().retry_after, 1s);
        EXPECT_EQ(e.refusal().by, refused_by::local_breaker);
        EXPECT_STREQ(e.what(),
                     "Breaker \"payments\" refuses the call (local breaker): The breaker is open. "
                     "Retry in 1 s.");
    }
}

TEST(Call, SaysLongTimesAsPeopleDo) {
    const auto end = [](std::chrono::milliseconds d) {
        const std::string text = breaker_open_error("b", {.retry_after = d}).what();
        return text.substr(text.find("Retry"));
    };
    EXPECT_EQ(end(9999ms), "Retry in 9999 ms.");
    EXPECT_EQ(end(10'001ms), "Retry in 11 s.");
    EXPECT_EQ(end(3'599'987ms), "Retry in 1 h.");
    EXPECT_EQ(end(3'600'000ms), "Retry in 1 h.");
    EXPECT_EQ(end(30 * 24h), "Retry in 30 days.");
}

TEST(Call, TheFallbackAnswersWhenRefused) {
    timed_breaker b(quick());
    const auto fallback = [](const refusal& why) { return why.retry_after.count(); };
    EXPECT_EQ(b->call([] { return std::int64_t{-1}; }, fallback), -1);
    b.fail(4);
    EXPECT_EQ(b->call([] { return std::int64_t{-1}; }, fallback), 1000);
    EXPECT_EQ(b->call([] { return std::string("real"); }, [] { return "later"; }), "later");
    EXPECT_EQ(b->call([] { return 1; }, default_classifier(), [] { return 2; }), 2);
}

TEST(Call, TheFallbackHidesNoException) {
    timed_breaker b;
    EXPECT_THROW(b->call([]() -> int { throw timed_out("x"); }, [] { return 1; }), timed_out);
}

TEST(Call, StopTokenIsTriggeredAtCallTimeout) {
    breaker_options o;
    o.call_timeout = 2s;
    timed_breaker b(o);
    const bool stopped = b->call([&](std::stop_token stop) {
        EXPECT_TRUE(stop.stop_possible());
        EXPECT_FALSE(stop.stop_requested());
        b.pass(2s);
        b.timer.fire();
        return stop.stop_requested();
    });
    EXPECT_TRUE(stopped);
    EXPECT_EQ(b.timer.asked, std::vector<std::chrono::milliseconds>{2s});
    EXPECT_EQ(b->snapshot().totals, (counts{.failure = 1}));
}

TEST(Call, ATimerOfACallThatHasEndedIsCancelled) {
    breaker_options o;
    o.call_timeout = 2s;
    timed_breaker b(o);
    b->call([](const std::stop_token&) {});
    EXPECT_EQ(b.timer.asked.size(), 1U);
    EXPECT_TRUE(b.timer.waiting.empty());
    b->call([] {});  // takes no token: no timer
    EXPECT_EQ(b.timer.asked.size(), 1U);
    EXPECT_EQ(b->snapshot().totals, (counts{.success = 2}));
}

TEST(Call, WithoutCallTimeoutTheTokenNeverStops) {
    timed_breaker b;
    b->call([](const std::stop_token& stop) { EXPECT_FALSE(stop.stop_possible()); });
    EXPECT_TRUE(b.timer.asked.empty());
}

// The thread that stops calls is the parent's; a child has its own, also for a call that forks.
TEST(Call, StopTokensWorkInAChildProcess) {
    breaker_options o;
    o.call_timeout = 1ms;
    circuit_breaker b("payments", o);
    const auto until_stopped = [](std::stop_token stop) {
        std::atomic<bool> stopped{false};
        const std::stop_callback tell(stop, [&] {
            stopped = true;
            stopped.notify_all();
        });
        stopped.wait(false);
    };
    b.call(until_stopped);  // the parent's thread runs
    ::pid_t child = -1;
    b.call([&](std::stop_token) { child = ::fork(); });
    if (child == 0) {
        ::alarm(20);  // ends a child that waits for ever
        b.call(until_stopped);
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "nobody stopped the call";
    b.call(until_stopped);
}

// A cancelled thread is nobody's failure, and no handler is asked about it.
TEST(Call, AThreadThatIsCancelledSettlesAsIgnored) {
    timed_breaker b;
    bool asked = false;
    struct job {
        timed_breaker& b;
        bool& asked;
    } mine{b, asked};
    ::pthread_t thread{};
    const auto run = [](void* what) -> void* {
        auto& j = *static_cast<job*>(what);
        j.b->call(
            [] {
                for (;;) ::pause();
            },
            classify_exceptions([&](const std::exception_ptr&) {
                j.asked = true;
                return outcome::failure;
            }));
        return nullptr;
    };
    ASSERT_EQ(::pthread_create(&thread, nullptr, run, &mine), 0);
    ASSERT_EQ(::pthread_cancel(thread), 0);
    ASSERT_EQ(::pthread_join(thread, nullptr), 0);
    EXPECT_FALSE(asked);
    EXPECT_EQ(b->snapshot().totals.failure, 0U);
}

}  // namespace
}  // namespace trinco::test
