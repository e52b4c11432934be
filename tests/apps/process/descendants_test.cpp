// Who is below a process: both ways to find out give the same answer, and names cannot deceive.

#include "apps/trinco/process/descendants.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <vector>

namespace {

using namespace trinco::program;

// A child with two children of its own, all of which live until they are killed.
class family {
public:
    family() {
        std::array<int, 2> told{};
        EXPECT_EQ(::pipe(told.data()), 0);
        child_ = ::fork();
        if (child_ == 0) be_parent(told[1]);
        grandchildren_.resize(2);
        for (::pid_t& grandchild : grandchildren_) {
            EXPECT_EQ(::read(told[0], &grandchild, sizeof grandchild),
                      static_cast<::ssize_t>(sizeof grandchild));
        }
        ::close(told[0]);
        ::close(told[1]);
    }
    family(const family&) = delete;
    family& operator=(const family&) = delete;
    ~family() {
        for (const ::pid_t grandchild : grandchildren_) ::kill(grandchild, SIGKILL);
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }

    [[nodiscard]] ::pid_t child() const { return child_; }
    [[nodiscard]] std::vector<::pid_t> everybody() const {
        return {child_, grandchildren_[0], grandchildren_[1]};
    }

private:
    [[noreturn]] static void be_parent(int tell) {
        ::prctl(PR_SET_NAME, "1) S 1 (x");  // as a part of a line of /proc it looks like its end
        for (int i = 0; i < 2; ++i) {
            const ::pid_t grandchild = ::fork();
            if (grandchild == 0) break;
            [[maybe_unused]] const auto written = ::write(tell, &grandchild, sizeof grandchild);
        }
        for (;;) ::pause();
    }

    ::pid_t child_ = 0;
    std::vector<::pid_t> grandchildren_;
};

std::vector<::pid_t> sorted(std::vector<::pid_t> processes) {
    std::sort(processes.begin(), processes.end());
    return processes;
}

TEST(Descendants, AreFoundByListsAndByLookingAtEverybody) {
    const family ours;
    EXPECT_EQ(sorted(descendants_of(::getpid())), sorted(ours.everybody()));
    EXPECT_EQ(sorted(descendants_by_scan(::getpid())), sorted(ours.everybody()));
    EXPECT_EQ(descendants_of(ours.child()).size(), 2U);
    EXPECT_EQ(descendants_by_scan(ours.child()).size(), 2U);
}

TEST(Descendants, ParentsComeFirst) {
    const family ours;
    EXPECT_EQ(descendants_of(::getpid()).front(), ours.child());
    EXPECT_EQ(descendants_by_scan(::getpid()).front(), ours.child());
}

TEST(Descendants, NobodyHasNone) {
    EXPECT_TRUE(descendants_of(::getpid()).empty());
    EXPECT_TRUE(descendants_by_scan(::getpid()).empty());
}

TEST(Descendants, OfAProcessThatIsGoneAreNone) {
    const ::pid_t gone = ::fork();
    if (gone == 0) ::_exit(0);
    ASSERT_EQ(::waitpid(gone, nullptr, 0), gone);
    EXPECT_TRUE(descendants_of(gone).empty());
    EXPECT_EQ(state_of(gone), '\0');
}

TEST(Descendants, AZombieIsOne) {
    const ::pid_t zombie = ::fork();
    if (zombie == 0) ::_exit(0);
    siginfo_t end{};
    ASSERT_EQ(::waitid(P_PID, static_cast<::id_t>(zombie), &end, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(descendants_of(::getpid()), std::vector<::pid_t>{zombie});
    EXPECT_EQ(state_of(zombie), 'Z');
    EXPECT_EQ(::waitpid(zombie, nullptr, 0), zombie);
}

TEST(Descendants, EndingAllLeavesStrangersAlone) {
    const ::pid_t stranger = ::fork();
    if (stranger == 0) {
        for (;;) ::pause();
    }
    const ::pid_t ours = ::fork();
    if (ours == 0) {
        ::signal(SIGTERM, SIG_IGN);
        for (;;) ::pause();
    }
    int reaped_status = 0;
    end_all({.strangers = {stranger}, .on_reaped = [&](::pid_t process, int status) {
                 if (process == ours) reaped_status = status;
             }});
    EXPECT_TRUE(WIFSIGNALED(reaped_status));
    EXPECT_EQ(descendants_of(::getpid()), std::vector<::pid_t>{stranger});
    ::kill(stranger, SIGKILL);
    EXPECT_EQ(::waitpid(stranger, nullptr, 0), stranger);
}

}  // namespace
