// The public once on the memory store, with real threads.
#include "trinco/once.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "trinco/memory.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::errc;
using trinco::once_options;
using trinco::session;

class Once : public ::testing::Test {
protected:
    trinco::store where_ = trinco::open("memory:", {trinco::drivers::memory()});
    session one_{where_};
    session two_{where_};
};

TEST_F(Once, RunsOnceForAllAndKeepsTheResult) {
    std::atomic<int> charges{0};
    std::vector<std::future<std::string>> all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(std::async(std::launch::async, [&, i] {
            return trinco::once(i % 2 == 0 ? one_ : two_, "invoice/42",
                                [&](const trinco::once_run& run) {
                                    EXPECT_EQ(run.run_id.size(), 32U);
                                    EXPECT_EQ(run.attempt, 1U);
                                    return "charge " + std::to_string(++charges);
                                })
                .value;
        }));
    }
    for (auto& f : all) EXPECT_EQ(f.get(), "charge 1");
    EXPECT_EQ(charges, 1);
    const auto later = trinco::once(two_, "invoice/42", [](const auto&) { return "no"; });
    EXPECT_FALSE(later.ran);
    EXPECT_EQ(later.value, "charge 1");
}

TEST_F(Once, WhatItThrowsIsTheFailure) {
    const auto fails = [](const trinco::once_run&) -> std::string {
        throw std::runtime_error("card refused");
    };
    const auto first = trinco::once(one_, "k", fails);
    EXPECT_TRUE(first.failed && first.ran);
    EXPECT_THROW(std::rethrow_exception(first.raised), std::runtime_error);
    const auto second = trinco::once(two_, "k", [](const auto&) { return "never"; });
    EXPECT_TRUE(second.failed);
    EXPECT_FALSE(second.ran);
    EXPECT_EQ(second.value, "card refused");
    const auto third =
        trinco::once(two_, "k", [](const auto&) { return "paid"; }, {.retry_on_failure = true});
    EXPECT_FALSE(third.failed);
    EXPECT_EQ(third.attempt, 2U);
}

TEST_F(Once, AKeyUsedWithOtherInputIsAMistake) {
    EXPECT_TRUE(trinco::once(one_, "k", [](const auto&) { return "a"; }, {.fingerprint = "1"}).ran);
    std::error_code error;
    const auto r = trinco::once(
        one_, "k", [](const auto&) { return "b"; }, {.fingerprint = "2"}, error);
    EXPECT_EQ(error, errc::key_reused);
    EXPECT_TRUE(r.value.empty()) << "the result of something else was given";
}

TEST_F(Once, AResultThatIsTooLongIsAFailureThatSaysItWasDone) {
    const auto r = trinco::once(one_, "k", [](const auto&) { return std::string(70'000, 'x'); });
    EXPECT_EQ(r.value.size(), 70'000U) << "who ran it has it whole";
    const auto later = trinco::once(two_, "k", [](const auto&) { return "again"; });
    EXPECT_TRUE(later.failed);
    EXPECT_NE(later.value.find("it was done"), std::string::npos);
}

TEST_F(Once, WaitingEndsAtItsTimeAndByStopping) {
    std::promise<void> running, go_on;
    auto busy = std::async(std::launch::async, [&] {
        return trinco::once(one_, "k", [&](const auto&) {
            running.set_value();
            go_on.get_future().get();
            return "r";
        });
    });
    running.get_future().get();
    std::error_code error;
    const auto never = [](const auto&) { return "never"; };
    EXPECT_FALSE(trinco::once(two_, "k", never, {.wait = 20ms}, error).ran);
    EXPECT_EQ(error, errc::not_acquired);
    std::stop_source stop;
    auto stopped = std::async(std::launch::async, [&] {
        std::error_code why;
        EXPECT_FALSE(trinco::once(two_, "k", never, {.stop = stop.get_token()}, why).ran);
        return why;
    });
    stop.request_stop();
    EXPECT_EQ(stopped.get(), errc::canceled);
    go_on.set_value();
    EXPECT_EQ(busy.get().value, "r");
}

TEST_F(Once, AResolvedResultIsGivenToAll) {
    once_options asks;
    std::atomic<int> asked{0};
    asks.reconcile = [&](const std::string& run_id) {
        EXPECT_EQ(run_id.size(), 32U);
        ++asked;
        return trinco::once_found{trinco::once_found::what_t::done, "charged before"};
    };
    // A run whose owner is gone: the record of one that was never finished.
    std::promise<void> running, go_on;
    session dies(where_);
    auto lost = std::async(std::launch::async, [&] {
        std::error_code error;
        const auto r = trinco::once(
            dies, "k",
            [&](const auto&) {
                running.set_value();
                go_on.get_future().get();
                return "late";
            },
            {}, error);
        EXPECT_EQ(r.value, "late") << "what it did is not lost for who did it";
        return error;
    });
    running.get_future().get();
    dies.close();
    std::error_code error;
    EXPECT_FALSE(trinco::once(
                     two_, "k", [](const auto&) { return "no"; }, {}, error)
                     .ran);
    EXPECT_EQ(error, errc::once_interrupted);
    try {
        static_cast<void>(trinco::once(two_, "k", [](const auto&) { return "no"; }));
        FAIL() << "it must not run by itself";
    } catch (const trinco::once_interrupted_error& e) {
        EXPECT_FALSE(e.owner().empty());
        EXPECT_EQ(e.run_id().size(), 32U);
        EXPECT_NE(std::string(e.what()).find("records resolve"), std::string::npos);
    }
    const auto known = trinco::once(
        two_, "k", [](const auto&) { return "no"; }, asks);
    EXPECT_EQ(known.value, "charged before");
    EXPECT_EQ(trinco::once(one_, "k", [](const auto&) { return "no"; }).value, "charged before");
    EXPECT_EQ(asked, 1);
    go_on.set_value();
    EXPECT_EQ(lost.get(), errc::conflict);
}

TEST_F(Once, BadInputIsRefusedWithASentence) {
    const auto f = [](const auto&) { return std::string(); };
    const auto sentence = [&](std::string_view key, const once_options& o) -> std::string {
        try {
            static_cast<void>(trinco::once(one_, key, f, o));
        } catch (const trinco::lock_error& e) {
            EXPECT_EQ(e.code(), errc::invalid);
            return e.what();
        }
        return "none";
    };
    EXPECT_NE(sentence("/k", {}).find("separated by"), std::string::npos);
    EXPECT_NE(sentence("k", {.fingerprint = "a\nb"}).find("fingerprint"), std::string::npos);
    EXPECT_NE(sentence("k", {.keep = -1s}).find("keep"), std::string::npos);
    EXPECT_NE(sentence("k", {.record_timeout = 2h}).find("record_timeout"), std::string::npos);
}

}  // namespace
