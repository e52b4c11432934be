// Locks on local beyond the contract: death, descendants, namespaces, lives of the machine.
#include "store/local/local_locks.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/store/local/child_process.hpp"
#include "tests/store/local/lock_client.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class LocalLocks : public ::testing::Test {
protected:
    [[nodiscard]] std::string file() const { return settings_.file.string(); }
    [[nodiscard]] std::unique_ptr<child_process> child(const std::string& verb) const {
        return std::make_unique<child_process>(TRINCO_LOCAL_CHILD,
                                               std::vector<std::string>{file(), verb, "n"});
    }
    // Its token when it has taken the lock.
    static std::uint64_t token_of(child_process& holder) {
        const auto line = holder.line(20s);
        EXPECT_TRUE(line.has_value());
        return line ? std::stoull(*line) : 0;
    }
    // As the first open of another life of the machine.
    void restart_machine() { settings_.boot_id += "+"; }
    // One grant by a process that comes and goes.
    std::uint64_t one_grant() {
        lock_client one(settings_);
        const auto on = one.open();
        EXPECT_FALSE(one.enter(on, 1, "n"));
        return one.await(on, 1, 5s).value_or(0);
    }

    scratch_folder folder_;
    local_settings settings_ = local_settings_for(folder_.file());
};

TEST_F(LocalLocks, AHolderThatIsKilledHandsOnWithinATenthOfASecond) {
    lock_client heir(settings_);
    const auto on = heir.open();
    std::uint64_t before = 0;
    milliseconds longest{0};
    for (std::uint64_t id = 1; id <= 5; ++id) {
        const auto holder = child("hold");
        const auto theirs = token_of(*holder);
        EXPECT_GT(theirs, before);
        ASSERT_FALSE(heir.enter(on, id, "n"));
        EXPECT_FALSE(heir.await(on, id, 60ms).has_value());
        holder->signal(SIGKILL);
        const auto killed = boot_clock::now();
        const auto mine = heir.await(on, id, 5s);
        longest = std::max(longest, std::chrono::ceil<milliseconds>(boot_clock::now() - killed));
        ASSERT_TRUE(mine.has_value());
        EXPECT_GT(*mine, theirs);
        before = *mine;
        heir.leave(on, id);
    }
    EXPECT_LT(longest, 100ms);
    RecordProperty("longest_ms", static_cast<int>(longest.count()));
}

TEST_F(LocalLocks, ASessionLivesUntilItsLastDescendantIsGone) {
    const auto holder = child("heir");
    const auto theirs = token_of(*holder);
    const auto line = holder->line(20s);
    ASSERT_TRUE(line.has_value());
    const auto descendant = static_cast<::pid_t>(std::stol(*line));
    lock_client next(settings_);
    const auto on = next.open();
    ASSERT_FALSE(next.enter(on, 1, "n"));
    holder->signal(SIGKILL);
    EXPECT_FALSE(next.await(on, 1, 300ms).has_value()) << "a descendant still works";
    ::kill(descendant, SIGKILL);
    const auto killed = boot_clock::now();
    const auto mine = next.await(on, 1, 5s);
    ASSERT_TRUE(mine.has_value());
    EXPECT_GT(*mine, theirs);
    EXPECT_LT(boot_clock::now() - killed, 150ms);
}

TEST_F(LocalLocks, AHolderInAnotherPidNamespaceIsNotTakenForDead) {
    child_process holder("unshare", {"--pid", "--fork", "--kill-child", "--", TRINCO_LOCAL_CHILD,
                                     file(), "hold", "n"});
    const auto line = holder.line(20s);
    if (!line) GTEST_SKIP() << "no right to make a PID namespace";
    lock_client next(settings_);
    const auto on = next.open();
    ASSERT_FALSE(next.enter(on, 1, "n"));
    EXPECT_FALSE(next.await(on, 1, 300ms).has_value()) << "its pid means nothing here";
    holder.signal(SIGKILL);
    const auto mine = next.await(on, 1, 5s);
    ASSERT_TRUE(mine.has_value());
    EXPECT_GT(*mine, std::stoull(*line));
}

TEST_F(LocalLocks, ADeadHolderForWhomNobodyWaitedIsNotInTheWay) {
    {
        const auto holder = child("hold");
        token_of(*holder);
    }
    lock_client next(settings_);
    EXPECT_EQ(next.entries_of("n"), 0U) << "the dead are not listed";
    const auto on = next.open();
    ASSERT_FALSE(next.enter(on, 1, "n"));
    EXPECT_TRUE(next.await(on, 1, 500ms).has_value());
    EXPECT_EQ(next.entries_of("n"), 1U);
}

TEST_F(LocalLocks, WhoObservesHearsThatAHolderDiedThoughNobodyWaited) {
    lock_client other(settings_);
    std::optional<std::string> holder = "not told yet";
    const op watching = other.store().observe("n", [&](const std::optional<entry>& e) {
        holder = e ? std::optional(e->info) : std::nullopt;
    });
    const auto held = child("hold");
    token_of(*held);
    other.on().run_until([&] { return holder == "test"; }, 5s);
    ASSERT_EQ(holder, "test");
    held->signal(SIGKILL);
    held->wait();
    other.on().run_until([&] { return !holder.has_value(); }, 5s);
    EXPECT_FALSE(holder.has_value());
}

TEST_F(LocalLocks, AWaiterThatWasKilledIsPassedOver) {
    lock_client first(settings_);
    const auto on = first.open();
    ASSERT_FALSE(first.enter(on, 1, "n"));
    ASSERT_TRUE(first.await(on, 1, 5s).has_value());
    const auto waiter = child("hold");
    const auto patience = boot_clock::now() + 20s;
    while (first.entries_of("n") < 2 && boot_clock::now() < patience) first.on().run_for(2ms);
    ASSERT_EQ(first.entries_of("n"), 2U);
    ASSERT_FALSE(first.enter(on, 2, "n"));
    waiter->signal(SIGKILL);
    waiter->wait();
    first.leave(on, 1);
    EXPECT_TRUE(first.await(on, 2, 500ms).has_value());
}

// Nobody watched the dead one: his entry is not the one just ahead.
TEST_F(LocalLocks, ADeadReaderInFrontDoesNotKeepAWriterWaiting) {
    const auto dead = child("share");
    token_of(*dead);
    lock_client reader(settings_);
    const auto reading = reader.open();
    ASSERT_FALSE(reader.enter(reading, 1, "n", claim_kind::shared));
    lock_client writer(settings_);
    const auto writing = writer.open();
    ASSERT_FALSE(writer.enter(writing, 1, "n"));
    dead->signal(SIGKILL);
    dead->wait();
    std::optional<std::error_code> granted;
    const op waiting = writer.store().await(writing, {1}, nullptr,
                                            [&](std::error_code e, const grant&) { granted = e; });
    writer.on().run_for(20ms);
    EXPECT_FALSE(granted.has_value());
    reader.leave(reading, 1);
    writer.on().run_until([&] { return granted.has_value(); }, 500ms);
    ASSERT_TRUE(granted.has_value());
    EXPECT_FALSE(*granted);
}

TEST_F(LocalLocks, AStoreThatClosesHandsOnAtOnce) {
    lock_client next(settings_);
    const auto on = next.open();
    {
        lock_client first(settings_);
        const auto theirs = first.open();
        ASSERT_FALSE(first.enter(theirs, 1, "n"));
        ASSERT_FALSE(next.enter(on, 1, "n"));
    }
    EXPECT_TRUE(next.await(on, 1, 500ms).has_value());
}

TEST_F(LocalLocks, ASessionIsLostWithItsFile) {
    lock_client a(settings_);
    const auto lease = a.open();
    EXPECT_FALSE(a.renew(lease));
    EXPECT_FALSE(a.store().is_gone());
    std::filesystem::rename(file(), file() + "-away");
    EXPECT_EQ(a.renew(lease), errc::lost);
    EXPECT_TRUE(a.store().is_gone());
    EXPECT_EQ(a.enter(lease, 1, "x"), errc::unavailable);
}

TEST_F(LocalLocks, AnotherLifeOfTheMachineEndsAllSessions) {
    lock_client before(settings_);
    const auto old = before.open();
    ASSERT_FALSE(before.enter(old, 1, "n"));
    const auto theirs = before.await(old, 1, 5s);
    restart_machine();
    EXPECT_GT(one_grant(), theirs.value_or(~std::uint64_t{0}));
    EXPECT_EQ(before.renew(old), errc::lost);
}

// What synchronous=NORMAL allows: the machine went down, and the last commits with it.
TEST_F(LocalLocks, TokensGrowAcrossAFileThatLostItsLastCommits) {
    std::uint64_t last = one_grant();
    for (int life = 0; life < 3; ++life) {
        scratch_folder saved;
        const auto copy = saved.path() / "all";
        std::filesystem::copy(folder_.path(), copy);
        for (int i = 0; i < 5; ++i) {
            const auto token = one_grant();
            EXPECT_GT(token, last);
            last = token;
        }
        for (const char* part : {"", "-wal"}) {
            std::filesystem::copy_file(copy / (std::string("local.db") + part), file() + part,
                                       std::filesystem::copy_options::overwrite_existing);
        }
        std::filesystem::remove(file() + "-shm");
        restart_machine();
        const auto token = one_grant();
        EXPECT_GT(token, last) << "life " << life;
        EXPECT_LT(token, std::uint64_t{1} << 53U);
        last = token;
    }
}

TEST_F(LocalLocks, TokensGrowInTheOrderOfTheWorkWhileProcessesAreKilled) {
    { lock_client(settings_).open(); }
    const auto log = (folder_.path() / "log").string();
    std::mt19937 random(11);
    std::vector<std::unique_ptr<child_process>> fleet;
    for (int i = 0; i < 5; ++i) {
        fleet.push_back(std::make_unique<child_process>(
            TRINCO_LOCAL_CHILD, std::vector<std::string>{file(), "race", "n", log, "40"}));
    }
    std::vector<std::uint64_t> told;
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::uint64_t n = 2 + random() % 12; n > 0; --n) told.push_back(token_of(*fleet[i]));
        fleet[i]->signal(SIGKILL);
    }
    for (std::size_t i = 3; i < fleet.size(); ++i) {
        for (int n = 0; n < 40; ++n) told.push_back(token_of(*fleet[i]));
        EXPECT_EQ(fleet[i]->wait(), 0);
    }
    std::vector<std::uint64_t> written;
    std::ifstream in(log);
    for (std::string line; std::getline(in, line);) written.push_back(std::stoull(line));
    EXPECT_GE(written.size(), told.size());
    EXPECT_GE(written.size(), 86U);
    EXPECT_EQ(std::adjacent_find(written.begin(), written.end(), std::greater_equal<>()),
              written.end())
        << "two held it at once, or a token did not grow";
}

TEST_F(LocalLocks, TheDescriptorOfALeaseIsItsOwnersAlone) {
    lock_client one(settings_);
    lock_client other(settings_);
    const auto on = one.open();
    EXPECT_GE(one.store().live_descriptor(on), 0);
    EXPECT_EQ(other.store().live_descriptor(on), -1);
    EXPECT_EQ(one.store().live_descriptor("7-1"), -1);
    EXPECT_EQ(one.store().live_descriptor(""), -1);
}

TEST_F(LocalLocks, WhoEndsWithoutClosingTakesItsSocketsFileAway) {
    const auto sockets = [&] {
        const std::filesystem::directory_iterator all(folder_.path());
        return std::count_if(begin(all), end(all), [](const auto& e) { return e.is_socket(); });
    };
    lock_client one(settings_);
    const auto on = one.open();
    ASSERT_FALSE(one.enter(on, 1, "n"));
    ASSERT_EQ(1, sockets());
    one.store().before_exit();
    EXPECT_EQ(0, sockets());
}

}  // namespace
}  // namespace trinco::detail::test
