// Guarded writes on real servers, 3.5 and 3.4, by processes that are stopped while they hold a lock
// and go on too late. Each holder is a process of its own, which is forked before a store is
// opened here: this process opens no store, and looks with etcdctl.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/store/etcd/test_etcd.hpp"
#include "trinco/etcd.hpp"
#include "trinco/guarded_write.hpp"
#include "trinco/mutex.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* key = "accounts:7";

void tell(int out, std::string line) {
    line += '\n';
    if (::write(out, line.data(), line.size()) < 0) throw std::runtime_error("nobody listens");
}

// Answers commands, a line each, for as long as there are any.
void serve(const std::string& url, std::chrono::seconds ttl, int out) {
    const auto where = trinco::open(url, {drivers::etcd()});
    session on(where, {.ttl = ttl});
    mutex m(on, "account-7");
    std::optional<guarded_write> made;
    std::string word, value;
    while (std::cin >> word) {
        std::string said = "done";
        if (word == "lock") {
            m.lock();
            said = on.id();
        } else if (word == "make") {
            std::cin >> value;
            made.emplace(m).put(key, value);
        } else if (word == "keep") {
            guarded_write(m).put("short:1", "x").keep_for(60s).commit();
        } else {
            if (word == "look-stop-commit") {
                tell(out, m.held() ? "holds" : "lost");
                ::raise(SIGSTOP);  // all threads; it has looked, and goes on below
            }
            std::error_code error;
            made->commit(error);
            said = error == errc::lost ? "refused" : error ? error.message() : "written";
        }
        tell(out, said);
    }
}

class holder {
public:
    holder(const std::string& url, std::chrono::seconds ttl) {
        std::array<int, 2> to{}, from{};
        if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0) {
            throw std::runtime_error("no pipe");
        }
        pid_ = ::fork();
        if (pid_ < 0) throw std::runtime_error("no process");
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(to[0], STDIN_FILENO);
            try {
                serve(url, ttl, from[1]);
            } catch (const std::exception& e) {
                std::cerr << e.what() << std::endl;
            }
            ::_exit(0);
        }
        ::close(to[0]);
        ::close(from[1]);
        in_ = from[0];
        out_ = to[1];
    }
    holder(const holder&) = delete;
    holder& operator=(const holder&) = delete;
    ~holder() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        ::close(in_);
        ::close(out_);
    }
    void wait_until_stopped() const { ::waitpid(pid_, nullptr, WUNTRACED); }
    void go_on() const { ::kill(pid_, SIGCONT); }
    // The next answer, at most 30 s later.
    std::string hear() const {
        std::string line;
        char c = 0;
        ::pollfd ready{in_, POLLIN, 0};
        while (::poll(&ready, 1, 30'000) == 1 && ::read(in_, &c, 1) == 1) {
            if (c == '\n') return line;
            line += c;
        }
        throw std::runtime_error("no answer but '" + line + "'");
    }
    std::string ask(const std::string& line) const {
        tell(out_, line);
        return hear();
    }

private:
    ::pid_t pid_ = -1;
    int in_ = -1;
    int out_ = -1;
};

class EtcdGuardedWrite : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const auto program = find_etcd(GetParam());
        if (!program) GTEST_SKIP() << "there is no " << GetParam() << "; try `make servers`";
        etcd_settings with;
        with.program = *program;
        server_.emplace(std::move(with));
    }
    [[nodiscard]] std::string url() const { return "etcd://" + server_->address(); }
    // As any other program reads it.
    [[nodiscard]] std::string value() const {
        return server_->must({"get", key, "--print-value-only"});
    }
    // It has looked, and stands still with the write in its hand.
    static void stops(const holder& late) {
        late.ask("make late");
        EXPECT_EQ(late.ask("look-stop-commit"), "holds");
        late.wait_until_stopped();
    }
    // Somebody else has the lock and has written; now it goes on.
    void goes_on_too_late(const holder& late) const {
        const holder heir(url(), 60s);
        heir.ask("lock");
        heir.ask("make heir");
        EXPECT_EQ(heir.ask("commit"), "written");
        late.go_on();
        EXPECT_EQ(late.hear(), "refused");
        EXPECT_EQ(value(), "heir\n");
        EXPECT_EQ(late.ask("commit"), "refused") << "however often";
        EXPECT_EQ(value(), "heir\n");
    }

    std::optional<test_etcd> server_;
};

TEST_P(EtcdGuardedWrite, IsRefusedToWhoWasPausedWhileItsLeaseWasRevoked) {
    const holder late(url(), 600s);
    const auto lease = late.ask("lock");
    late.ask("make early");
    EXPECT_EQ(late.ask("commit"), "written");
    EXPECT_EQ(value(), "early\n");
    stops(late);
    // Its own deadline is minutes away: only the server knows.
    server_->must({"lease", "revoke", lease});
    goes_on_too_late(late);
}

TEST_P(EtcdGuardedWrite, IsRefusedToWhoWasPausedPastItsDeadline) {
    const holder late(url(), 2s);
    late.ask("lock");
    stops(late);
    goes_on_too_late(late);
}

TEST_P(EtcdGuardedWrite, LiesWhereOthersReadItAndInNobodysWay) {
    const holder one(url(), 60s);
    one.ask("lock");
    one.ask("make 90");
    EXPECT_EQ(one.ask("commit"), "written");
    EXPECT_EQ(value(), "90\n");
    one.ask("keep");
    const auto fields = [&](const char* of) { return server_->must({"get", of, "-w", "fields"}); };
    EXPECT_NE(fields(key).find("\"Lease\" : 0\n"), std::string::npos);
    EXPECT_EQ(fields("short:1").find("\"Lease\" : 0\n"), std::string::npos) << "it would stay";
    // A lock of etcdctl waits for whatever lies beneath its name: it must find nothing there.
    for (const char* name : {"accounts", "accounts:7", "short", "short:1"}) {
        EXPECT_EQ(server_->must({"get", std::string(name) + "/", "--prefix"}), "") << name;
        EXPECT_EQ(server_->ctl({"lock", name, "true"}).code, 0) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Versions, EtcdGuardedWrite, ::testing::Values("etcd", "etcd-3.4"),
                         [](const auto& version) {
                             return std::string(version.param) == "etcd" ? "V3_5" : "V3_4";
                         });

}  // namespace
}  // namespace trinco::detail::test
