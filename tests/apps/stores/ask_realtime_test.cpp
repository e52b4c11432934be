// Opening stores as the program does, and asking them things from a waiting thread.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/open_store.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

store opened(const std::string& url) {
    std::error_code error;
    store made = trinco::open(url, all_drivers(), {}, error);
    if (error) ADD_FAILURE() << error.message();
    return made;
}

TEST(Ask, BringsTheAnswer) {
    const store at = opened("memory:");
    const auto lease = ask_locks<detail::lease>(at, 5s, [](auto& from, auto by, auto done) {
        return from.open(30s, "me", by, std::move(done));
    });
    EXPECT_FALSE(lease.error);
    EXPECT_EQ(30s, lease.value.ttl);
    const auto page = ask_breakers<detail::page>(at, 5s, [](auto& from, auto by, auto done) {
        return from.inspect("", "", 10, by, std::move(done));
    });
    EXPECT_FALSE(page.error);
    EXPECT_TRUE(page.value.rows.empty());
}

TEST(Ask, BringsTheErrorOfTheStore) {
    const store at = opened("memory:");
    const auto renewed = ask_locks<std::chrono::seconds>(
        at, 5s,
        [](auto& from, auto by, auto done) { return from.renew("none", by, std::move(done)); });
    EXPECT_EQ(errc::lost, renewed.error);
    const problem said = store_problem(at, "renew the lease", renewed.error);
    EXPECT_EQ(exit_lost, said.code);
    EXPECT_EQ("the store memory: could not renew the lease: the lease or claim no longer exists",
              said.sentence);
}

TEST(Ask, AnEmptyStoreIsInvalid) {
    const auto none = ask_locks<detail::ended_claims>(
        store(), 5s,
        [](auto& from, auto by, auto done) { return from.revoke("none", by, std::move(done)); });
    EXPECT_EQ(errc::invalid, none.error);
}

TEST(Ask, AnAnswerThatNeverComesEndsWithItsLimitAndIsCanceledOnTheThreadOfTheStore) {
    const store at = opened("memory:");
    const auto state = detail::store_access::state(at);
    const auto canceled = std::make_shared<std::atomic<bool>>(false);
    const auto kept = std::make_shared<detail::completion<int>>();
    const auto none = ask_locks<int>(at, 1ms, [&](auto&, auto, detail::completion<int> done) {
        *kept = std::move(done);
        return detail::op([canceled, state] { *canceled = state->on().on_thread(); });
    });
    EXPECT_EQ(errc::unknown_outcome, none.error);
    // The cancellation was posted before this turn; afterwards an answer reaches nobody.
    const auto turn = detail::run_and_wait(state->on(), 5s, [canceled, kept] {
        EXPECT_TRUE(*canceled);
        (*kept)({}, 7);
    });
    EXPECT_FALSE(turn);
    // Destroyed where it would be, so that the question which it holds goes, too.
    EXPECT_FALSE(detail::run_and_wait(state->on(), 5s, [kept] { *kept = nullptr; }));
}

TEST(Ask, ARequestThatCouldNotBeginInTimeNeverDoes) {
    const store at = opened("memory:");
    const auto state = detail::store_access::state(at);
    std::atomic<bool> go_on{false};
    std::atomic<bool> has_begun{false};
    state->on().post([&] {
        while (!go_on) std::this_thread::yield();
    });
    const auto none = ask_locks<int>(at, 1ms, [&](auto&, auto, auto) {
        has_begun = true;
        return detail::op();
    });
    EXPECT_EQ(errc::unknown_outcome, none.error);
    go_on = true;
    EXPECT_FALSE(detail::run_and_wait(state->on(), 5s, [] {}));
    EXPECT_FALSE(has_begun);
}

TEST(OpenStore, AMistakeInTheUrlIsOneSentenceWithTheCodeForUsage) {
    settings with;
    with.locks_url = "memroy:";
    with.name_space = "default";
    const auto result = open_store(with, needs::locks);
    const auto* const wrong = std::get_if<problem>(&result);
    ASSERT_NE(nullptr, wrong);
    EXPECT_EQ(exit_usage, wrong->code);
    EXPECT_NE(std::string::npos, wrong->sentence.find("did you mean memory:?"));
}

TEST(OpenStore, RefusesOneThatEndsWithTheProgram) {
    for (const std::string url : {"memory:", "memory:jobs", "memory"}) {
        settings with;
        with.locks_url = url;
        with.breakers_url = url;
        with.name_space = "default";
        for (const needs what : {needs::locks, needs::breakers}) {
            const auto result = open_store(with, what);
            const auto* const wrong = std::get_if<problem>(&result);
            ASSERT_NE(nullptr, wrong) << url;
            EXPECT_EQ(exit_usage, wrong->code);
            EXPECT_NE(std::string::npos, wrong->sentence.find("use local:"));
        }
    }
}

#if TRINCO_LOCAL
class OpenStoreLocal : public testing::Test {
protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "trinco-XXXXXX").string();
        ASSERT_NE(nullptr, ::mkdtemp(name.data()));
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    [[nodiscard]] std::string url() const { return "local:" + (folder_ / "x.db").string(); }

private:
    std::filesystem::path folder_;
};

TEST_F(OpenStoreLocal, NamesTheFailureDomainAndTheNamespace) {
    settings with;
    with.breakers_url = url();
    with.name_space = "staging";
    with.instance = "rack-7";
    const auto result = open_store(with, needs::breakers);
    const auto* const at = std::get_if<store>(&result);
    ASSERT_NE(nullptr, at);
    EXPECT_EQ("rack-7", at->voter());
    EXPECT_EQ("staging", at->name_space());
    EXPECT_NE("rack-7", at->instance());
}

TEST_F(OpenStoreLocal, SaysTheWarningsOfTheSettings) {
    settings with;
    with.locks_url = url();
    with.name_space = "default";
    with.warnings = {"beware"};
    testing::internal::CaptureStderr();
    EXPECT_TRUE(std::holds_alternative<store>(open_store(with, needs::locks)));
    EXPECT_EQ("trinco: beware\n", testing::internal::GetCapturedStderr());
}
#endif

}  // namespace
}  // namespace trinco::program
