#include "trinco/election.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using trinco::errc;
using trinco::leader;
using trinco::session;

// What a watch was told, for a test that waits for it.
class diary {
public:
    void note(const std::optional<leader>& who) {
        const std::lock_guard hold(mutex_);
        seen_.push_back(who ? who->value : "nobody");
        changed_.notify_all();
    }
    [[nodiscard]] bool ends_with(const std::string& value) {
        std::unique_lock hold(mutex_);
        return changed_.wait_for(hold, 20s,
                                 [&] { return !seen_.empty() && seen_.back() == value; });
    }
    [[nodiscard]] std::size_t size() {
        const std::lock_guard hold(mutex_);
        return seen_.size();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> seen_;
};

class Election : public ::testing::Test {
protected:
    trinco::store where_ = trinco::open("memory:", {trinco::drivers::memory()});
    session one_{where_};
    session two_{where_};
};

TEST_F(Election, OneLeadsAndEverybodySeesWho) {
    diary seen;
    trinco::leader_watch watch(two_, "chief",
                               [&](const std::optional<leader>& who) { seen.note(who); });
    EXPECT_TRUE(seen.ends_with("nobody")) << "that nobody leads is told, too";
    trinco::election a(one_, "chief"), b(two_, "chief");
    a.campaign("a:1");
    EXPECT_TRUE(a.held());
    EXPECT_TRUE(seen.ends_with("a:1"));
    EXPECT_FALSE(b.try_campaign_for("b:1", 0s));
    auto next = std::async(std::launch::async, [&] { b.campaign("b:1"); });
    a.proclaim("a:2");
    EXPECT_TRUE(seen.ends_with("a:2"));
    a.resign();
    next.get();
    EXPECT_TRUE(b.held());
    EXPECT_GT(b.fencing_token(), a.fencing_token());
    EXPECT_TRUE(seen.ends_with("b:1"));
    b.resign();
    EXPECT_TRUE(seen.ends_with("nobody"));
}

TEST_F(Election, ALeaderThatLosesItsSessionIsSeenToBeGone) {
    diary seen;
    trinco::leader_watch watch(two_, "chief",
                               [&](const std::optional<leader>& who) { seen.note(who); });
    trinco::election a(one_, "chief");
    a.campaign("a");
    ASSERT_TRUE(seen.ends_with("a"));
    one_.close();
    EXPECT_FALSE(a.held());
    EXPECT_TRUE(seen.ends_with("nobody"));
    std::error_code error;
    a.proclaim("again", error);
    EXPECT_EQ(error, errc::not_held);
}

TEST_F(Election, OnlyTheLeaderProclaims) {
    trinco::election a(one_, "chief");
    std::error_code error;
    a.proclaim("early", error);
    EXPECT_EQ(error, errc::not_held);
    a.proclaim("", error);
    EXPECT_EQ(error, errc::invalid);
    EXPECT_THROW(a.campaign(std::string(5'000, 'x')), trinco::lock_error);
    a.campaign("", {}, error);
    EXPECT_EQ(error, errc::invalid);
    EXPECT_FALSE(a.held());
}

TEST_F(Election, AWatchThatIsGoneTellsNothing) {
    diary seen;
    trinco::election a(one_, "chief");
    {
        trinco::leader_watch watch(two_, "chief",
                                   [&](const std::optional<leader>& who) { seen.note(who); });
        EXPECT_TRUE(seen.ends_with("nobody"));
    }
    const auto told = seen.size();
    a.campaign("a");
    a.resign();
    trinco::mutex after(two_, "x");
    after.lock();  // whatever was under way has passed the same loop
    EXPECT_EQ(seen.size(), told);
    EXPECT_THROW(trinco::leader_watch(two_, "a//b", [](const auto&) {}), trinco::lock_error);
    EXPECT_THROW(trinco::leader_watch(two_, "a", nullptr), trinco::lock_error);
}

}  // namespace
