// Byte streams over real sockets on this machine.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <vector>

#include "stream_harness.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

std::string pattern(std::size_t bytes) {
    std::string text(bytes, ' ');
    std::uint32_t x = 1;
    for (auto& c : text) {
        x = x * 1'664'525 + 1'013'904'223;
        c = static_cast<char>(x >> 24);
    }
    return text;
}

// A path under which a Unix socket may lie, removed with its folder.
class scratch_folder {
public:
    scratch_folder() {
        std::string name = (std::filesystem::temp_directory_path() / "trinco-net-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] std::string at(const char* name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

class StreamBytes : public stream_test {};

TEST_F(StreamBytes, go_both_ways_in_order) {
    connect_both();
    write(*near_, "to the far end");
    EXPECT_EQ(read_all(*far_, 14), "to the far end");
    write(*far_, "and");
    write(*far_, " back");
    EXPECT_EQ(read_all(*near_, 8), "and back");
}

TEST_F(StreamBytes, go_through_a_unix_socket_which_is_removed_at_the_end) {
    const scratch_folder folder;
    const auto path = folder.at("s");
    connect_both(stream_address::local(path));
    write(*near_, "hello");
    EXPECT_EQ(read_all(*far_, 5), "hello");
    EXPECT_TRUE(std::filesystem::exists(path));
    on_loop([&] { listener_.reset(); });
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(StreamBytes, go_in_pieces_when_there_are_more_than_the_system_takes) {
    connect_both();
    const auto sent = pattern(8 * 1024 * 1024);
    awaited<std::size_t> written;
    op writing;
    on_loop([&] { writing = near_->write(sent, written.next()); });
    settle();
    EXPECT_FALSE(written.came());  // nobody has read: it waits, in the background
    EXPECT_EQ(read_all(*far_, sent.size()), sent);
    ASSERT_TRUE(written.wait());
    EXPECT_EQ(written.error(), std::error_code());
    EXPECT_EQ(written.value(), sent.size());
    on_loop([&] { writing.cancel(); });
}

TEST_F(StreamBytes, arrive_whole_from_thousands_of_single_bytes) {
    connect_both();
    const auto sent = pattern(5'000);
    awaited<int> all_sent;
    op writing;
    std::size_t next = 0;
    auto done = all_sent.next();
    std::function<void()> one = [&] {
        if (next == sent.size()) return done({}, 0);
        writing = near_->write(sent.substr(next++, 1), [&](std::error_code error, std::size_t n) {
            EXPECT_EQ(error, std::error_code());
            EXPECT_EQ(n, 1U);
            one();
        });
    };
    on_loop([&] { one(); });
    EXPECT_EQ(read_all(*far_, sent.size()), sent);
    ASSERT_TRUE(all_sent.wait());
    on_loop([&] { writing.cancel(); });
}

TEST_F(StreamBytes, nothing_is_written_at_once_and_answered_later) {
    connect_both();
    bool inside = true;
    bool answered_inside = false;
    awaited<std::size_t> written;
    op writing;
    on_loop([&] {
        writing = near_->write("", [&, done = written.next()](auto error, auto n) mutable {
            answered_inside = inside;
            done(error, n);
        });
        inside = false;
    });
    ASSERT_TRUE(written.wait());
    EXPECT_FALSE(answered_inside);
    EXPECT_EQ(written.error(), std::error_code());
    on_loop([&] { writing.cancel(); });
}

class StreamEnds : public stream_test {};

TEST_F(StreamEnds, a_peer_that_ends_is_read_as_no_bytes_as_often_as_asked) {
    connect_both();
    write(*far_, "last");
    on_loop([&] { far_.reset(); });
    EXPECT_EQ(read_all(*near_, 4), "last");
    EXPECT_EQ(read(*near_), "");
    EXPECT_EQ(read(*near_), "");
}

TEST_F(StreamEnds, half_of_it_ends_after_a_write_under_way_and_the_other_half_goes_on) {
    connect_both();
    const auto sent = pattern(6 * 1024 * 1024);
    awaited<std::size_t> written;
    op writing;
    on_loop([&] {
        writing = near_->write(sent, written.next());
        near_->finish();
    });
    EXPECT_EQ(read_all(*far_, sent.size() + 1), sent);  // to the end
    ASSERT_TRUE(written.wait());
    EXPECT_EQ(written.error(), std::error_code());
    write(*near_, "more", errc::shut_down);
    write(*far_, "answer");
    EXPECT_EQ(read_all(*near_, 6), "answer");
    on_loop([&] { writing.cancel(); });
}

TEST_F(StreamEnds, a_reset_is_an_error_for_a_pending_read) {
    listen();
    auto peer = plain_socket::connected(listener_->where().port);
    awaited<stream_ptr> accepted;
    op a;
    on_loop([&] { a = listener_->accept(accepted.next()); });
    ASSERT_TRUE(accepted.wait());
    on_loop([&] {
        near_ = std::move(accepted.value());
        a.cancel();
    });
    awaited<std::string> got;
    op reading;
    on_loop([&] { reading = near_->read_some(got.next<std::string_view>()); });
    peer.reset();
    ASSERT_TRUE(got.wait());
    EXPECT_EQ(got.error(), std::errc::connection_reset);
    on_loop([&] { reading.cancel(); });
}

TEST_F(StreamEnds, writing_to_a_peer_that_is_gone_is_an_error_and_no_signal) {
    listen();
    auto peer = plain_socket::connected(listener_->where().port);
    awaited<stream_ptr> accepted;
    op a;
    on_loop([&] { a = listener_->accept(accepted.next()); });
    ASSERT_TRUE(accepted.wait());
    on_loop([&] {
        near_ = std::move(accepted.value());
        a.cancel();
    });
    peer.reset();
    std::error_code error;
    for (int i = 0; i < 1'000 && !error; ++i) {
        awaited<std::size_t> written;
        op writing;
        on_loop([&] { writing = near_->write("x", written.next()); });
        ASSERT_TRUE(written.wait());
        error = written.error();
        on_loop([&] { writing.cancel(); });
    }
    EXPECT_TRUE(error == std::errc::broken_pipe || error == std::errc::connection_reset) << error;
    write(*near_, "again", std::make_error_code(std::errc::broken_pipe));
    // The loop's thread takes no signals; one would have been left pending there.
    bool pending = true;
    on_loop([&] {
        ::sigset_t signals{};
        ::sigpending(&signals);
        pending = ::sigismember(&signals, SIGPIPE) != 0;
    });
    EXPECT_FALSE(pending);
}

TEST_F(StreamEnds, closing_answers_what_is_pending_and_what_comes_later) {
    connect_both();
    awaited<std::string> got;
    awaited<std::size_t> written;
    op reading;
    op writing;
    bool inside = true;
    on_loop([&] {
        reading =
            near_->read_some([&, done = got.next<std::string_view>()](auto e, auto v) mutable {
                EXPECT_FALSE(inside);
                done(e, v);
            });
        writing = near_->write(pattern(8 * 1024 * 1024), written.next());
        near_->close();
        inside = false;
    });
    ASSERT_TRUE(got.wait() && written.wait());
    EXPECT_EQ(got.error(), errc::shut_down);
    EXPECT_EQ(written.error(), errc::shut_down);
    EXPECT_EQ(read(*near_, errc::shut_down), "");
    write(*near_, "x", errc::shut_down);
    while (!read(*far_, {}).empty()) {
    }  // the peer sees an end
    on_loop([&] {
        reading.cancel();
        writing.cancel();
    });
}

class StreamOps : public stream_test {};

TEST_F(StreamOps, a_second_read_or_write_is_refused_and_harms_nothing) {
    connect_both();
    awaited<std::string> first;
    awaited<std::string> second;
    op a;
    op b;
    on_loop([&] {
        a = near_->read_some(first.next<std::string_view>());
        b = near_->read_some(second.next<std::string_view>());
    });
    ASSERT_TRUE(second.wait());
    EXPECT_EQ(second.error(), errc::busy);
    write(*far_, "for the first");
    ASSERT_TRUE(first.wait());
    EXPECT_EQ(first.value(), "for the first");
    awaited<std::size_t> big;
    awaited<std::size_t> small;
    on_loop([&] {
        a = near_->write(pattern(8 * 1024 * 1024), big.next());
        b = near_->write("x", small.next());
    });
    ASSERT_TRUE(small.wait());
    EXPECT_EQ(small.error(), errc::busy);
    on_loop([&] {
        a.cancel();
        b.cancel();
    });
}

TEST_F(StreamOps, a_dropped_read_loses_no_byte) {
    connect_both();
    awaited<std::string> dropped;
    op reading;
    on_loop([&] {
        reading = near_->read_some(dropped.next<std::string_view>());
        reading.cancel();
    });
    write(*far_, "first");
    settle();
    on_loop([&] {
        reading = near_->read_some(dropped.next<std::string_view>());
        reading.cancel();  // the bytes are there already
    });
    settle();
    EXPECT_EQ(dropped.times(), 0);
    EXPECT_EQ(read_all(*near_, 5), "first");
}

TEST_F(StreamOps, an_old_op_does_not_drop_a_new_read) {
    connect_both();
    awaited<std::string> first;
    awaited<std::string> second;
    op old;
    op young;
    on_loop([&] { old = near_->read_some(first.next<std::string_view>()); });
    write(*far_, "1");
    ASSERT_TRUE(first.wait());
    on_loop([&] {
        young = near_->read_some(second.next<std::string_view>());
        old.cancel();
    });
    write(*far_, "2");
    ASSERT_TRUE(second.wait());
    EXPECT_EQ(second.value(), "2");
    on_loop([&] { young.cancel(); });
}

TEST_F(StreamOps, a_write_dropped_before_its_first_or_after_its_last_byte_harms_nothing) {
    connect_both();
    awaited<std::size_t> never;
    on_loop([&] { (void)near_->write("whole", never.next()); });  // taken at once, op dropped
    write(*near_, " and more");
    EXPECT_EQ(read_all(*far_, 14), "whole and more");
    EXPECT_EQ(never.times(), 0);
}

TEST_F(StreamOps, a_write_dropped_in_the_middle_ends_writing_not_reading) {
    connect_both();
    awaited<std::size_t> never;
    on_loop([&] { (void)near_->write(pattern(8 * 1024 * 1024), never.next()); });
    write(*near_, "garbage", errc::canceled);
    write(*far_, "still heard");
    EXPECT_EQ(read_all(*near_, 11), "still heard");
    EXPECT_EQ(never.times(), 0);
}

TEST_F(StreamOps, ending_the_stream_inside_its_own_completion_is_allowed) {
    connect_both();
    awaited<int> ended;
    op reading;
    on_loop([&] {
        reading = near_->read_some([&, done = ended.next()](auto, std::string_view got) mutable {
            EXPECT_EQ(got, "x");
            near_.reset();
            reading.cancel();
            done({}, 0);
        });
    });
    write(*far_, "x");
    ASSERT_TRUE(ended.wait());
    EXPECT_EQ(read(*far_), "");
}

TEST_F(StreamOps, a_stopped_loop_destroys_completions_that_own_their_stream) {
    connect_both();
    const auto witness = std::make_shared<int>(0);
    on_loop([&] {
        auto owned = std::make_shared<std::pair<stream_ptr, op>>();
        owned->first = std::move(near_);
        owned->second = owned->first->read_some([owned, witness](auto, auto) { ++*witness; });
        auto held = std::make_shared<std::pair<std::unique_ptr<stream_listener>, op>>();
        held->first = std::move(listener_);
        held->second = held->first->accept([held, witness](auto, auto) { ++*witness; });
    });
    EXPECT_EQ(witness.use_count(), 3);
    on_loop([&] {
        far_.reset();
        factory_.reset();
    });
    EXPECT_TRUE(on_->stop(patience));
    EXPECT_EQ(witness.use_count(), 1);
    open("another, so that the fixture can close it");
}

TEST_F(StreamOps, in_a_child_nothing_happens_to_the_parents_connection) {
    connect_both();
    awaited<std::string> got;
    op reading;
    on_loop([&] { reading = near_->read_some(got.next<std::string_view>()); });
    const ::pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        reading.cancel();
        near_->close();
        op none = near_->write("from the child", [](auto, auto) { ::_exit(3); });
        near_.reset();
        far_.reset();
        listener_.reset();
        factory_.reset();
        ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    write(*far_, "to the parent");
    ASSERT_TRUE(got.wait());
    EXPECT_EQ(got.value(), "to the parent");
    on_loop([&] { reading.cancel(); });
}

class StreamDescriptors : public stream_test {};

TEST_F(StreamDescriptors, are_closed_on_exec) {
    const scratch_folder folder;
    connect_both();
    connect_both(stream_address::local(folder.at("s")));
    int seen = 0;
    for (int fd = 3; fd < 200; ++fd) {
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags < 0) continue;
        ::sockaddr_storage kind{};
        ::socklen_t size = sizeof kind;
        if (::getsockname(fd, reinterpret_cast<::sockaddr*>(&kind), &size) != 0) continue;
        ++seen;
        EXPECT_NE(flags & FD_CLOEXEC, 0) << fd;
    }
    EXPECT_GE(seen, 3);  // the second pair and its listener, and perhaps pipes of the test's runner
}

TEST_F(StreamDescriptors, serve_two_hundred_connections_at_once) {
    constexpr int many = 200;
    listen();
    struct pair {
        awaited<stream_ptr> connected;
        op connecting;
        op reading;
        op writing;
    };
    std::vector<pair> all(many);
    std::vector<stream_ptr> served;
    std::vector<op> echoes(many);
    awaited<int> every_one;
    op accepting;
    std::function<void()> accept_next;
    on_loop([&] {
        accept_next = [&] {
            accepting = listener_->accept([&](std::error_code error, stream_ptr s) {
                ASSERT_EQ(error, std::error_code());
                const auto i = served.size();
                served.push_back(std::move(s));
                // An echo of one message each.
                echoes[i] = served[i]->read_some([&, i](std::error_code, std::string_view got) {
                    echoes[i] = served[i]->write(std::string(got), [](auto, auto) {});
                });
                accept_next();
            });
        };
        accept_next();
        for (auto& one : all) {
            one.connecting =
                factory_->connect(listener_->where(), on_->now() + patience, one.connected.next());
        }
    });
    for (auto& one : all) {
        ASSERT_TRUE(one.connected.wait());
        ASSERT_EQ(one.connected.error(), std::error_code());
    }
    for (int i = 0; i < many; ++i) {
        const auto text = "message " + std::to_string(i);
        write(*all[static_cast<std::size_t>(i)].connected.value(), text);
    }
    for (int i = 0; i < many; ++i) {
        const auto text = "message " + std::to_string(i);
        EXPECT_EQ(read_all(*all[static_cast<std::size_t>(i)].connected.value(), text.size()), text);
    }
    EXPECT_GE(open_descriptors(), descriptors_ + 2 * many);
    on_loop([&] {
        all.clear();
        echoes.clear();
        served.clear();
        accepting.cancel();
    });
}

}  // namespace
}  // namespace trinco::detail::test
