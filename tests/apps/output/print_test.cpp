#include "apps/trinco/output/print.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/problem.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

struct pipe_ends {
    pipe_ends() {
        std::array<int, 2> made{};
        EXPECT_EQ(0, ::pipe2(made.data(), O_CLOEXEC));
        from = made[0];
        to = made[1];
    }
    int from = -1;
    int to = -1;
};

TEST(WriteAll, AReaderThatHasGoneIsAnErrorNotASignal) {
    const pipe_ends broken;
    ::close(broken.from);
    EXPECT_EQ(EPIPE, write_all(broken.to, "x"));
    ::sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(0, ::sigismember(&pending, SIGPIPE));
    ::sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    EXPECT_EQ(0, ::sigismember(&blocked, SIGPIPE));
    ::close(broken.to);
}

TEST(WriteAll, WritesMoreThanAPipeTakesAlsoWithoutBlocking) {
    const pipe_ends ends;
    ::fcntl(ends.to, F_SETFL, O_NONBLOCK);
    const std::string text(300'000, 'x');
    std::string received;
    std::thread reader([&] {
        std::array<char, 4'096> part{};
        for (;;) {
            const auto read = ::read(ends.from, part.data(), part.size());
            if (read <= 0) return;
            received.append(part.data(), static_cast<std::size_t>(read));
        }
    });
    EXPECT_EQ(0, write_all(ends.to, text));
    ::close(ends.to);
    reader.join();
    EXPECT_EQ(text, received);
    ::close(ends.from);
}

TEST(WriteAll, AFullDiskIsAnError) {
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    ASSERT_GE(full, 0);
    EXPECT_EQ(ENOSPC, write_all(full, "x"));
    ::close(full);
}

TEST(LiveTerminal, IsATerminalThatWantsMoreThanLines) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(terminal, 0);
    const pipe_ends ends;
    ::setenv("TERM", "xterm", 1);
    ::unsetenv("NO_COLOR");
    EXPECT_TRUE(is_live_terminal(terminal));
    EXPECT_FALSE(is_live_terminal(ends.to));
    ::setenv("NO_COLOR", "1", 1);
    EXPECT_FALSE(is_live_terminal(terminal));
    ::setenv("NO_COLOR", "", 1);
    EXPECT_TRUE(is_live_terminal(terminal));
    ::setenv("TERM", "dumb", 1);
    EXPECT_FALSE(is_live_terminal(terminal));
    ::unsetenv("TERM");
    EXPECT_FALSE(is_live_terminal(terminal));
    for (const int fd : {terminal, ends.from, ends.to}) ::close(fd);
}

TEST(Problem, EachErrorHasTheCodeThatScriptsExpect) {
    EXPECT_EQ(exit_denied, exit_code_of(errc::denied));
    EXPECT_EQ(exit_usage, exit_code_of(errc::invalid));
    EXPECT_EQ(exit_usage, exit_code_of(errc::not_supported));
    EXPECT_EQ(exit_not_acquired, exit_code_of(errc::conflict));
    EXPECT_EQ(exit_not_acquired, exit_code_of(errc::not_acquired));
    EXPECT_EQ(exit_not_acquired, exit_code_of(errc::breaker_open));
    EXPECT_EQ(exit_lost, exit_code_of(errc::lost));
    EXPECT_EQ(exit_lost, exit_code_of(errc::evicted));
    EXPECT_EQ(exit_unavailable, exit_code_of(errc::unavailable));
    EXPECT_EQ(exit_unavailable, exit_code_of(errc::busy));
    EXPECT_EQ(exit_unavailable, exit_code_of(errc::unknown_outcome));
    EXPECT_EQ(exit_denied, exit_code_of(std::make_error_code(std::errc::permission_denied)));
    EXPECT_EQ(exit_unavailable, exit_code_of(std::make_error_code(std::errc::io_error)));
}

TEST(Problem, IsOneLineThatIsHarmlessToATerminal) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(exit_lost, complain({exit_lost, "a\nb\x1b[31m gr\xc3\xbc\xc3\x9f"}));
    EXPECT_EQ("trinco: a\\x0ab\\x1b[31m gr\xc3\xbc\xc3\x9f\n",
              testing::internal::GetCapturedStderr());
}

}  // namespace
}  // namespace trinco::program
