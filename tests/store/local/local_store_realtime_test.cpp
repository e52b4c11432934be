// Stores of local as a program opens them.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "tests/store/local/scratch_folder.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/local.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"

namespace trinco {
namespace {

using namespace std::chrono_literals;

// One open store of a service with one breaker.
struct service {
    explicit service(const std::string& url, const std::string& voter)
        : where(open(url, {drivers::local()}, {.voter = voter})), breakers(where) {}
    store where;
    breaker_registry breakers;
};

TEST(LocalStore, ABreakerIsSharedByThoseWhoOpenTheSameFile) {
    const detail::test::scratch_folder folder;
    const auto url = "local:" + folder.file().string();
    service a(url, "a");
    service b(url, "b");
    auto& mine = a.breakers.get("payments");
    auto& theirs = b.breakers.get("payments");
    std::mutex m;
    std::condition_variable changed;
    bool refused = false;
    EXPECT_EQ(theirs.call([] { return 7; }), 7);
    ASSERT_FALSE(mine.trip("a drill"));
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (!refused && std::chrono::steady_clock::now() < until) {
        refused = !theirs.try_acquire();
        std::unique_lock hold(m);
        changed.wait_for(hold, 1ms);
    }
    EXPECT_TRUE(refused);
}

TEST(LocalStore, AMutexIsHeldByOneProcessAtATimeAndItsTokenGrows) {
    const detail::test::scratch_folder folder;
    const auto url = "local:" + folder.file().string();
    const store here = open(url, {drivers::local()});
    const store there = open(url, {drivers::local()});
    ASSERT_TRUE(here.has_locks());
    session mine(here);
    session theirs(there);
    mutex a(mine, "reports/nightly");
    mutex b(theirs, "reports/nightly");
    std::uint64_t last = 0;
    for (int i = 0; i < 20; ++i) {
        auto& first = i % 2 == 0 ? a : b;
        auto& second = i % 2 == 0 ? b : a;
        first.lock();
        EXPECT_GT(first.fencing_token(), last);
        last = first.fencing_token();
        EXPECT_FALSE(second.try_lock());
        first.unlock();
    }
}

std::pair<std::error_code, std::string> refusal(const std::string& url) {
    std::error_code error;
    std::string why;
    const auto s = open(url, {drivers::local()}, {}, error, &why);
    EXPECT_FALSE(s);
    return {error, why};
}

TEST(LocalStore, APathThatIsNotAbsoluteIsRefusedWithTheUrl) {
    for (const char* url : {"local:file.db", "local:./file.db", "local:/folder/"}) {
        const auto [error, why] = refusal(url);
        EXPECT_EQ(error, errc::invalid);
        EXPECT_NE(why.find(url), std::string::npos) << why;
        EXPECT_NE(why.find("absolute"), std::string::npos) << why;
    }
}

TEST(LocalStore, WhyAFileWasNotOpenedIsOneSentence) {
    const detail::test::scratch_folder folder;
    const auto [error, why] = refusal("local:" + (folder.path() / "no" / "x.db").string());
    EXPECT_EQ(error, errc::unavailable);
    EXPECT_NE(why.find("does not exist"), std::string::npos) << why;
}

TEST(LocalStore, NothingIsLeftBesideTheFileButItsLogAndGate) {
    const detail::test::scratch_folder folder;
    {
        service a("local:" + folder.file().string(), "a");
        static_cast<void>(a.breakers.get("payments").trip("a drill"));
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
        EXPECT_EQ(entry.path().filename().string().find("-s"),
                  entry.path().filename() == "local.db-shm" ? 8U : std::string::npos)
            << entry.path();
    }
}

}  // namespace
}  // namespace trinco
