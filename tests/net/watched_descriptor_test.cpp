// Who waits for a descriptor, turn by turn on a loop without a thread.
#include "net/watched_descriptor.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/event_loop.hpp"

namespace trinco::detail {
namespace {

constexpr auto readable = watched_descriptor::readable;
constexpr auto writable = watched_descriptor::writable;

// One end is watched, the other is the test's.
class pair_of_sockets final : public watched_descriptor::waiter {
public:
    explicit pair_of_sockets(event_loop& on) { replace(on); }

    // Another one, at the same place in memory.
    void replace(event_loop& on) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) !=
            0) {
            return;
        }
        other_.emplace(ends[1]);
        std::error_code error;
        watched.emplace(loop_access::inside(on), own_descriptor(ends[0]), *this, error);
        EXPECT_FALSE(error);
    }

    void wait(watched_descriptor::event what, std::function<void()> f) {
        (what == readable ? on_readable_ : on_writable_) = std::move(f);
        watched->wait(what);
    }
    void send(const char* text) {
        const std::string bytes(text);
        EXPECT_EQ(::write(other_->get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
    }
    // At most so many bytes.
    std::string read(std::size_t most) {
        std::string bytes(most, ' ');
        const auto n = ::read(watched->get(), bytes.data(), most);
        bytes.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
        return bytes;
    }
    void end() { other_.reset(); }

    std::optional<watched_descriptor> watched;

private:
    void ready_for(watched_descriptor::event what) override {
        const auto f = what == readable ? on_readable_ : on_writable_;
        f();
    }

    std::function<void()> on_readable_;
    std::function<void()> on_writable_;
    std::optional<own_descriptor> other_;
};

class WatchedDescriptor : public testing::Test {
protected:
    [[nodiscard]] bool turn() { return loop_access::inside(on_)->turn(0); }
    // Turns in which something came, until nothing does any more.
    int turns() {
        int n = 0;
        while (turn() && n < 100) ++n;
        return n;
    }

    event_loop on_;
    pair_of_sockets a_{on_};
    int told_ = 0;
};

TEST_F(WatchedDescriptor, is_told_of_when_something_comes_and_not_before) {
    a_.wait(readable, [&] { ++told_; });
    EXPECT_EQ(turns(), 0);
    a_.send("x");
    EXPECT_EQ(told_, 0) << "inside a call";
    EXPECT_TRUE(turn());
    EXPECT_EQ(told_, 1);
}

TEST_F(WatchedDescriptor, is_told_of_again_for_what_was_left) {
    std::string seen;
    std::function<void()> read = [&] {
        seen += a_.read(2) + "|";
        a_.wait(readable, [&] { read(); });
    };
    a_.wait(readable, [&] { read(); });
    a_.send("abcde");
    EXPECT_EQ(turns(), 3);
    EXPECT_EQ(seen, "ab|cd|e|");
}

TEST_F(WatchedDescriptor, keeps_quiet_when_nobody_reads_what_came) {
    a_.wait(readable, [&] { ++told_; });
    a_.send("x");
    EXPECT_LE(turns(), 2);
    EXPECT_EQ(told_, 1);
    a_.send("y");
    EXPECT_EQ(turns(), 0);
    a_.wait(readable, [&] { ++told_; });
    EXPECT_TRUE(turn()) << "of what has come before";
    EXPECT_EQ(told_, 2);
}

TEST_F(WatchedDescriptor, may_be_written_to_once_for_each_wait) {
    a_.wait(writable, [&] { ++told_; });
    EXPECT_EQ(turns(), 1);
    EXPECT_EQ(told_, 1);
    a_.wait(readable, [&] { ADD_FAILURE() << "nothing came"; });
    a_.wait(writable, [&] { ++told_; });
    EXPECT_EQ(turns(), 1);
    EXPECT_EQ(told_, 2);
}

// AddressSanitizer sees who writes into the call that has returned.
TEST_F(WatchedDescriptor, may_be_closed_by_its_owner_and_destroyed_later) {
    a_.wait(readable, [&] {
        ++told_;
        a_.watched->close();
    });
    a_.send("x");
    EXPECT_EQ(turns(), 1);
    a_.watched.reset();
    EXPECT_EQ(told_, 1);
}

TEST_F(WatchedDescriptor, tells_the_end_to_both_who_wait_and_keeps_quiet_then) {
    a_.wait(readable, [&] { ++told_; });
    a_.wait(writable, [&] { ++told_; });
    a_.end();
    EXPECT_LE(turns(), 2);
    EXPECT_EQ(told_, 2);
    a_.wait(readable, [&] { ++told_; });
    EXPECT_TRUE(turn());
    EXPECT_EQ(told_, 3);
    EXPECT_LE(turns(), 2);
}

TEST_F(WatchedDescriptor, whose_end_nobody_waits_for_keeps_quiet) {
    a_.end();
    EXPECT_LE(turns(), 2);
    EXPECT_EQ(turns(), 0);
}

TEST_F(WatchedDescriptor, that_ends_by_one_that_was_told_first_is_told_nothing) {
    pair_of_sockets b(on_);
    // Whichever is told first ends the other.
    a_.wait(readable, [&] {
        ++told_;
        b.watched.reset();
    });
    b.wait(readable, [&] {
        ++told_;
        a_.watched->close();
    });
    a_.send("x");
    b.send("x");
    turns();
    EXPECT_EQ(told_, 1);
}

TEST_F(WatchedDescriptor, is_told_nothing_of_the_one_that_was_at_its_place_before) {
    pair_of_sockets b(on_);
    const auto replace = [&](pair_of_sockets& other) {
        ++told_;
        other.replace(on_);
        other.wait(readable, [] { ADD_FAILURE() << "nothing came"; });
    };
    a_.wait(readable, [&] { replace(b); });
    b.wait(readable, [&] { replace(a_); });
    a_.send("x");
    b.send("x");
    turns();
    EXPECT_EQ(told_, 1);
}

TEST_F(WatchedDescriptor, may_end_by_its_own_function) {
    a_.wait(readable, [&] {
        ++told_;
        a_.watched.reset();
    });
    a_.wait(writable, [&] { ++told_; });
    a_.end();
    turns();
    EXPECT_EQ(told_, 1);
}

TEST_F(WatchedDescriptor, that_is_released_stays_open_and_is_told_nothing) {
    a_.wait(readable, [&] { ++told_; });
    a_.send("x");
    const auto fd = a_.watched->release();
    EXPECT_EQ(turns(), 0);
    char byte = 0;
    EXPECT_EQ(::read(fd.get(), &byte, 1), 1);
    EXPECT_EQ(told_, 0);
}

}  // namespace
}  // namespace trinco::detail
