// What keeps those who wait awake, and what must not: trouble with the file, files that are removed
// or made anew under living processes, work that never ends, other PID namespaces.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "store/local/local_locks.hpp"
#include "tests/store/local/child_process.hpp"
#include "tests/store/local/lock_client.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/error.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

milliseconds time_on_core() {
    ::timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return milliseconds(t.tv_sec * 1'000 + t.tv_nsec / 1'000'000);
}

class LocalWatch : public ::testing::Test {
protected:
    [[nodiscard]] std::string file() const { return settings_.file.string(); }
    [[nodiscard]] std::string live_file() const { return file() + "-live"; }
    [[nodiscard]] std::vector<std::string> holder() const { return {file(), "hold", "n"}; }

    scratch_folder folder_;
    local_settings settings_ = local_settings_for(folder_.file());
};

TEST_F(LocalWatch, WhatCannotBeChangedIsNotTriedInAHurry) {
    child_process held(TRINCO_LOCAL_CHILD, holder());
    ASSERT_TRUE(held.line(20s).has_value());
    lock_client waits(settings_);
    const auto on = waits.open();
    ASSERT_FALSE(waits.enter(on, 1, "n"));
    ASSERT_FALSE(waits.await(on, 1, 50ms).has_value());
    // From now on every transaction that writes fails, and he who waits sees a holder that is dead.
    std::filesystem::rename(settings_.file, folder_.path() / "aside");
    held.signal(SIGKILL);
    held.wait();
    const auto before = time_on_core();
    EXPECT_FALSE(waits.await(on, 1, 1s).has_value());
    EXPECT_LT(time_on_core() - before, 100ms);
    std::filesystem::rename(folder_.path() / "aside", settings_.file);
    EXPECT_TRUE(waits.await(on, 1, 5s).has_value()) << "it goes on when the trouble is over";
}

TEST_F(LocalWatch, ANumberThatSomebodyStillHoldsIsPassedOver) {
    lock_client client(settings_);
    const int other = ::open(live_file().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(other, 0);
    struct ::flock bytes {};
    bytes.l_type = F_WRLCK;
    bytes.l_whence = SEEK_SET;
    bytes.l_start = 1;
    bytes.l_len = 3;
    // As a descendant of a session does whose file was removed while nobody else had it open.
    ASSERT_EQ(::fcntl(other, F_OFD_SETLK, &bytes), 0);
    const auto on = client.open();
    EXPECT_TRUE(on.ends_with("-4")) << on;
    EXPECT_FALSE(client.enter(on, 1, "n"));
    EXPECT_TRUE(client.await(on, 1, 5s).has_value());
    ::close(other);
}

TEST_F(LocalWatch, NobodyIsTakenForDeadBecauseTheFileOfTheLivingWasRemoved) {
    lock_client next(settings_);
    const auto on = next.open();
    auto held = std::make_unique<lock_client>(settings_);
    const auto theirs = held->open();
    ASSERT_FALSE(held->enter(theirs, 1, "n"));
    ASSERT_TRUE(held->await(theirs, 1, 5s).has_value());
    ASSERT_TRUE(std::filesystem::remove(live_file()));

    ASSERT_FALSE(next.enter(on, 1, "n"));
    EXPECT_FALSE(next.await(on, 1, 300ms).has_value());
    EXPECT_EQ(next.open(), "") << "nobody who comes later would see its byte";
    try {
        const lock_client late(settings_);
        ADD_FAILURE() << "two files of the living, and each would take the other's for dead";
    } catch (const open_error& e) {
        EXPECT_EQ(e.code(), make_error_code(errc::unavailable));
        EXPECT_NE(std::string(e.what()).find("-live was removed while"), std::string::npos)
            << e.what();
    }
    EXPECT_FALSE(std::filesystem::exists(live_file()));
    held = nullptr;
    EXPECT_TRUE(next.await(on, 1, 5s).has_value());
    next.revoke(on);
    lock_client late(settings_);
    EXPECT_NE(late.open(), "");
}

// Always more reads under way than one transaction takes, each a long one.
class endless_reading {
public:
    explicit endless_reading(lock_client& of) : of_(of) {
        bool there = false;
        const change all{"x", std::string(100'000, 'x'), any_revision};
        const op written = of.store().write("", {}, {&all, 1}, 0s, of.on().now() + 10s,
                                            [&](std::error_code, std::uint64_t) { there = true; });
        of.on().run_until([&] { return there; }, 10s);
        for (int i = 0; i < 300; ++i) again();
    }
    ~endless_reading() { over_ = true; }
    endless_reading(const endless_reading&) = delete;
    endless_reading& operator=(const endless_reading&) = delete;

private:
    void again() {
        asked_.emplace_back();
        const auto at = std::prev(asked_.end());
        *at = of_.store().read("x", of_.on().now() + 10s,
                               [this, at](std::error_code, const std::optional<record>&) {
                                   of_.on().post([this, at] {
                                       if (over_) return;
                                       asked_.erase(at);
                                       again();
                                   });
                               });
    }

    lock_client& of_;
    bool over_ = false;
    std::list<op> asked_;
};

TEST_F(LocalWatch, WhoWaitsIsToldThoughItsProcessNeverStopsCalling) {
    child_process held(TRINCO_LOCAL_CHILD, holder());
    ASSERT_TRUE(held.line(20s).has_value());
    lock_client waits(settings_);
    const auto on = waits.open();
    ASSERT_FALSE(waits.enter(on, 1, "n"));
    std::optional<std::uint64_t> token;
    const op waiting = waits.store().await(
        on, {1}, nullptr,
        [&](std::error_code e, const grant& g) { token = e ? 0 : g.tokens.at(0); });
    endless_reading reads(waits);
    waits.on().run_for(300ms);
    EXPECT_FALSE(token.has_value());
    held.signal(SIGKILL);
    const auto killed = boot_clock::now();
    waits.on().run_until([&] { return token.has_value(); }, 5s);
    ASSERT_TRUE(token.has_value());
    EXPECT_GT(*token, 0U);
    EXPECT_LT(boot_clock::now() - killed, 500ms);
}

TEST_F(LocalWatch, WhoRunsOutIsRemovedByWhoStandsBehindAndNotSooner) {
    child_process held(TRINCO_LOCAL_CHILD, holder());
    ASSERT_TRUE(held.line(20s).has_value());
    lock_client middle(settings_);
    const auto theirs = middle.open(2s);
    const auto opened = boot_clock::now();
    ASSERT_FALSE(middle.enter(theirs, 1, "n"));
    lock_client last(settings_);
    const auto on = last.open();
    ASSERT_FALSE(last.enter(on, 1, "n"));
    const op waiting = last.store().await(on, {1}, nullptr, [](std::error_code, const grant&) {});
    last.on().run_for(1s);
    ASSERT_FALSE(middle.renew(theirs));
    const auto renewed = boot_clock::now();
    sqlite_database db(file());
    const auto is_there = [&] { return db.number("SELECT count(*) FROM claims") == 3; };
    last.on().run_for(1'500ms);
    EXPECT_TRUE(is_there() || boot_clock::now() > renewed + 2s);
    EXPECT_GT(boot_clock::now(), opened + 2s);
    while (is_there() && boot_clock::now() < renewed + 10s) last.on().run_for(20ms);
    EXPECT_LT(boot_clock::now() - renewed, 4s);
}

TEST_F(LocalWatch, WhoComesToStandBehindAHolderOfAnotherPidNamespaceLooksAfterItAtOnce) {
    lock_client first(settings_);
    const auto ours = first.open();
    ASSERT_FALSE(first.enter(ours, 1, "n"));
    ASSERT_TRUE(first.await(ours, 1, 5s).has_value());
    child_process middle("unshare", {"--pid", "--fork", "--kill-child", "--", TRINCO_LOCAL_CHILD,
                                     file(), "hold", "n"});
    const auto patience = boot_clock::now() + 5s;
    while (first.entries_of("n") < 2 && boot_clock::now() < patience) first.on().run_for(5ms);
    if (first.entries_of("n") < 2) GTEST_SKIP() << "no right to make a PID namespace";
    lock_client last(settings_);
    const auto on = last.open();
    ASSERT_FALSE(last.enter(on, 1, "n"));
    EXPECT_FALSE(last.await(on, 1, 300ms).has_value());
    std::optional<std::uint64_t> token;
    const op waiting = last.store().await(on, {1}, nullptr, [&](std::error_code e, const grant& g) {
        token = e ? 0 : g.tokens.at(0);
    });
    last.on().run_for(100ms);
    first.leave(ours, 1);
    ASSERT_TRUE(middle.line(5s).has_value());
    last.on().run_for(100ms);
    middle.signal(SIGKILL);
    const auto killed = boot_clock::now();
    last.on().run_until([&] { return token.has_value(); }, 10s);
    ASSERT_TRUE(token.has_value());
    EXPECT_LT(boot_clock::now() - killed, 400ms) << "not only at the reading of every five seconds";
}

TEST_F(LocalWatch, WhoStoodBehindOneThatGaveUpLooksAfterTheHolderAtOnce) {
    child_process held(TRINCO_LOCAL_CHILD, holder());
    ASSERT_TRUE(held.line(20s).has_value());
    lock_client middle(settings_);
    const auto theirs = middle.open();
    ASSERT_FALSE(middle.enter(theirs, 1, "n"));
    lock_client last(settings_);
    const auto on = last.open();
    ASSERT_FALSE(last.enter(on, 1, "n"));
    std::optional<std::uint64_t> token;
    const op waiting = last.store().await(on, {1}, nullptr, [&](std::error_code e, const grant& g) {
        token = e ? 0 : g.tokens.at(0);
    });
    last.on().run_for(200ms);
    middle.leave(theirs, 1);
    last.on().run_for(100ms);
    held.signal(SIGKILL);
    const auto killed = boot_clock::now();
    last.on().run_until([&] { return token.has_value(); }, 10s);
    ASSERT_TRUE(token.has_value());
    EXPECT_LT(boot_clock::now() - killed, 400ms) << "not only at the reading of every five seconds";
}

TEST_F(LocalWatch, TheDeadDoNotKeepOthersFromOpeningASession) {
    lock_client client(settings_);
    {
        local_file raw(settings_, "local:x");
        raw.db().run(
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
            "INSERT INTO sessions(label, ttl, ends, socket, pid, pid_space) "
            "SELECT 'dead', 86400, 9000000000000000, 'local.db-snobody', 1, '' FROM n");
    }
    EXPECT_NE(client.open(), "");
}

TEST_F(LocalWatch, WhatRootPutsBesideAFileOfSomebodyElseIsTheirs) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    constexpr ::uid_t somebody = 65'534;
    { const local_file made(settings_, "local:x"); }
    ASSERT_EQ(::chown(file().c_str(), somebody, somebody), 0);
    std::filesystem::remove(file() + "-gate");
    std::filesystem::remove(live_file());
    lock_client root(settings_);
    ASSERT_NE(root.open(), "");
    int sockets = 0;
    for (const auto& one : std::filesystem::directory_iterator(folder_.path())) {
        struct ::stat found {};
        ASSERT_EQ(::stat(one.path().c_str(), &found), 0);
        EXPECT_EQ(found.st_uid, somebody) << one.path();
        EXPECT_EQ(found.st_gid, somebody) << one.path();
        if (S_ISSOCK(found.st_mode)) ++sockets;
    }
    EXPECT_EQ(sockets, 1);
}

}  // namespace
}  // namespace trinco::detail::test
