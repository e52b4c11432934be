// The link over real sockets, with a real server that is killed and paused, and with a peer that
// resets the connection in the middle of a reply. Without a server the tests that need one are
// skipped; `make servers` fetches one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "net/tls_factory.hpp"
#include "store/redis/redis_link.hpp"
#include "store/redis/redis_url.hpp"
#include "tests/net/stream_harness.hpp"
#include "tests/net/tls_world.hpp"
#include "tests/store/redis/test_server.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;

// A server that can be killed and begun again at the same place.
class server_process {
public:
    server_process() {
        std::string name = (fs::temp_directory_path() / "trinco-link-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) folder_ = name;
    }
    server_process(const server_process&) = delete;
    ~server_process() {
        end();
        fs::remove_all(folder_);
    }
    [[nodiscard]] std::string socket() const { return (folder_ / "s").string(); }
    void begin(const std::string& program, const std::vector<std::string>& more = {}) {
        std::vector<std::string> words{
            program, "--port", "0", "--unixsocket", socket(),       "--dir",
            folder_, "--save", "",  "--logfile",    folder_ / "log"};
        words.insert(words.end(), more.begin(), more.end());
        std::vector<char*> raw;
        for (auto& word : words) raw.push_back(word.data());
        raw.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ != 0) return;
        ::execv(raw[0], raw.data());
        ::_exit(127);
    }
    void send(int signal) const { ::kill(pid_, signal); }
    void end() {
        if (pid_ <= 0) return;
        send(SIGKILL);
        ::waitpid(std::exchange(pid_, -1), nullptr, 0);
    }

private:
    fs::path folder_;
    ::pid_t pid_ = -1;
};

class RedisLinkReal : public stream_test {
protected:
    ~RedisLinkReal() override {
        on_loop([this] {
            link_.reset();
            tls_.reset();
        });
    }
    void link_to(const stream_address& to, redis_link_options options = {}) {
        on_loop([&] {
            link_.emplace(*on_, *factory_, to, std::move(options),
                          [this](const redis_link_event& e) { ++(e.up ? ups_ : downs_); });
        });
    }
    void begin_server() {
        const auto program = find_redis_server();
        if (!program) GTEST_SKIP() << "no redis-server and no valkey-server; see make servers";
        program_ = *program;
        server_.begin(program_);
        link_to(stream_address::local(server_.socket()));
    }
    struct question {
        awaited<resp_reply> got;
        op interest;
    };
    void ask(question& q, const std::vector<std::string>& words,
             std::chrono::milliseconds within = patience) {
        on_loop([&] {
            q.interest = link_->request(resp_command(words), on_->now() + within, q.got.next());
        });
    }
    resp_reply call(const std::vector<std::string>& words, std::error_code expected = {}) {
        question q;
        ask(q, words);
        EXPECT_TRUE(q.got.wait());
        EXPECT_EQ(q.got.error(), expected) << q.got.error().message();
        on_loop([&] { q.interest.cancel(); });
        return q.got.value();
    }
    void wait_for(const std::atomic<int>& count, int n) {
        const auto until = boot_clock::now() + patience;
        while (count < n && boot_clock::now() < until) std::this_thread::sleep_for(1ms);
        ASSERT_GE(count, n);
    }

    std::string program_;
    server_process server_;
    std::unique_ptr<stream_factory> tls_;
    std::optional<redis_link> link_;
    std::atomic<int> ups_{0};
    std::atomic<int> downs_{0};
};

TEST_F(RedisLinkReal, pipelines_of_64_are_answered_in_order) {
    begin_server();
    if (IsSkipped()) return;
    EXPECT_EQ(call({"PING"}), resp_reply::of("PONG"));
    for (int round = 0; round < 50; ++round) {
        std::array<question, 64> all;
        on_loop([&] {
            for (std::size_t i = 0; i < all.size(); ++i) {
                const std::vector<std::string> words{"ECHO",
                                                     std::to_string(i) + std::string(i * 37, 'x')};
                all[i].interest =
                    link_->request(resp_command(words), on_->now() + patience, all[i].got.next());
            }
        });
        for (std::size_t i = 0; i < all.size(); ++i) {
            ASSERT_TRUE(all[i].got.wait());
            ASSERT_EQ(all[i].got.value(),
                      resp_reply::of(std::to_string(i) + std::string(i * 37, 'x')));
            ASSERT_EQ(all[i].got.times(), 1);
        }
        on_loop([&] {
            for (auto& q : all) q.interest.cancel();
        });
    }
    EXPECT_EQ(call({"GET"}).error_word(), "ERR");
    EXPECT_EQ(downs_ > 0 ? ups_.load() : 1, 1);  // down only before the server was there
}

TEST_F(RedisLinkReal, a_killed_server_is_found_again) {
    begin_server();
    if (IsSkipped()) return;
    EXPECT_EQ(call({"SET", "k", "v"}), resp_reply::of("OK"));
    server_.send(SIGSTOP);
    question lost;
    ask(lost, {"GET", "k"});
    settle();  // it is sent
    server_.end();
    ASSERT_TRUE(lost.got.wait());
    EXPECT_EQ(lost.got.error(), errc::unknown_outcome);
    server_.begin(program_);
    EXPECT_EQ(call({"GET", "k"}), resp_reply{});  // another server, without the data
    wait_for(ups_, 2);
    on_loop([&] { lost.interest.cancel(); });
}

TEST_F(RedisLinkReal, a_short_pause_of_the_server_costs_nothing_but_the_deadline) {
    begin_server();
    if (IsSkipped()) return;
    (void)call({"PING"});
    const int downs = downs_;
    server_.send(SIGSTOP);
    question early;
    question late;
    ask(early, {"ECHO", "early"}, 100ms);
    ask(late, {"ECHO", "late"});
    ASSERT_TRUE(early.got.wait());
    EXPECT_EQ(early.got.error(), errc::unknown_outcome);
    server_.send(SIGCONT);
    ASSERT_TRUE(late.got.wait());
    EXPECT_EQ(late.got.value(), resp_reply::of("late"));
    EXPECT_EQ(downs_, downs);
    on_loop([&] {
        early.interest.cancel();
        late.interest.cancel();
    });
}

TEST_F(RedisLinkReal, a_long_pause_of_the_server_costs_the_connection) {
    begin_server();
    if (IsSkipped()) return;
    (void)call({"PING"});
    wait_for(ups_, 1);
    const int downs = downs_;
    const int ups = ups_;
    server_.send(SIGSTOP);
    EXPECT_EQ(call({"PING"}, errc::unknown_outcome), resp_reply{});
    wait_for(downs_, downs + 1);
    server_.send(SIGCONT);
    EXPECT_EQ(call({"PING"}), resp_reply::of("PONG"));
    wait_for(ups_, ups + 1);
}

TEST_F(RedisLinkReal, over_tls_with_certificates_of_both_sides_and_a_password) {
    const auto program = find_redis_server();
    if (!program) GTEST_SKIP() << "no redis-server and no valkey-server; see make servers";
    const certificates papers;
    ASSERT_TRUE(papers.made());
    std::uint16_t port = 0;
    plain_socket::listening(-1, port).close();
    server_.begin(*program, {"--tls-port", std::to_string(port), "--tls-cert-file",
                             papers.at("server.pem"), "--tls-key-file", papers.at("server.key"),
                             "--tls-ca-cert-file", papers.at("ca.pem"), "--requirepass", "s3"});
    const auto made = parse_redis_url(
        "rediss://:s3@127.0.0.1:" + std::to_string(port) + "?ca=" + papers.at("ca.pem") +
        "&cert=" + papers.at("client.pem") + "&key=" + papers.at("client.key"));
    const auto& target = std::get<redis_target>(made);
    auto to = target.nodes.at(0);
    to.tls = target.tls;
    on_loop([&] {
        tls_ = make_tls_factory(*on_, *factory_);
        link_.emplace(*on_, *tls_, to,
                      redis_link_options{.steps = {{{"AUTH", target.login.password}}}});
    });
    EXPECT_EQ(call({"SET", "k", std::string(300'000, 'v')}), resp_reply::of("OK"));
    EXPECT_EQ(call({"GET", "k"}), resp_reply::of(std::string(300'000, 'v')));
    server_.end();
}

TEST_F(RedisLinkReal, a_reset_in_the_middle_of_a_reply_is_unknown_and_the_next_one_is_answered) {
    std::uint16_t port = 0;
    auto door = plain_socket::listening(8, port);
    link_to(stream_address::tcp("127.0.0.1", port));
    question cut;
    ask(cut, {"GET", "k"});
    std::array<char, 100> bytes{};
    {
        plain_socket peer(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ASSERT_GT(::recv(peer.get(), bytes.data(), bytes.size(), 0), 0);
        const std::string_view half = "$100\r\nabc";
        ASSERT_GT(::send(peer.get(), half.data(), half.size(), MSG_NOSIGNAL), 0);
        peer.reset();
    }
    ASSERT_TRUE(cut.got.wait());
    EXPECT_EQ(cut.got.error(), errc::unknown_outcome);
    question next;
    ask(next, {"GET", "k"});
    plain_socket peer(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_GT(::recv(peer.get(), bytes.data(), bytes.size(), 0), 0);
    ASSERT_GT(::send(peer.get(), "$1\r\nv\r\n", 7, MSG_NOSIGNAL), 0);
    ASSERT_TRUE(next.got.wait());
    EXPECT_EQ(next.got.value(), resp_reply::of("v"));
    on_loop([&] {
        cut.interest.cancel();
        next.interest.cancel();
    });
}

}  // namespace
}  // namespace trinco::detail::test
