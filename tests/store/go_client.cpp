#include "tests/store/go_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto patience = 30s;

}  // namespace

go_client::go_client(const std::string& program, const std::string& endpoints,
                     std::chrono::seconds ttl) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::runtime_error("no pair of sockets");
    }
    std::vector<std::string> words{program, endpoints, std::to_string(ttl.count())};
    std::vector<char*> raw;
    for (auto& word : words) raw.push_back(word.data());
    raw.push_back(nullptr);
    const auto parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no process for " + program);
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(127);
        ::dup2(ends[1], STDIN_FILENO);
        ::dup2(ends[1], STDOUT_FILENO);
        ::dup2(::open("/dev/null", O_RDWR), STDERR_FILENO);
        ::execv(raw[0], raw.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    ours_ = ends[0];
}

go_client::~go_client() {
    ::shutdown(ours_, SHUT_WR);
    // Its output ends when it does; sessions of a server that is gone are not waited for.
    if (pid_ > 0) {
        ::pollfd end{ours_, POLLIN, 0};
        std::array<char, 4'096> part;
        for (const auto by = clock::now() + 5s; clock::now() < by;) {
            if (::poll(&end, 1, 100) == 1 && ::read(ours_, part.data(), part.size()) <= 0) break;
        }
        kill();
    }
    ::close(ours_);
}

void go_client::kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

void go_client::send(const std::string& who, const std::string& command) {
    const std::string line = who + " " + command + "\n";
    // Lines are short: one is taken as a whole or, when its reader is gone, not at all.
    if (::send(ours_, line.data(), line.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(line.size())) {
        throw std::runtime_error("the client of Go does not take: " + line);
    }
}

void go_client::read(std::chrono::milliseconds wait) {
    ::pollfd more{ours_, POLLIN, 0};
    std::array<char, 4'096> part;
    for (auto limit = static_cast<int>(wait.count()); ::poll(&more, 1, limit) == 1; limit = 0) {
        const auto n = ::read(ours_, part.data(), part.size());
        if (n <= 0) throw std::runtime_error("the client of Go has ended");
        rest_.append(part.data(), static_cast<std::size_t>(n));
    }
    for (std::size_t end = 0; (end = rest_.find('\n')) != std::string::npos;) {
        const auto line = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        const auto space = line.find(' ');
        if (space != std::string::npos) {
            said_[line.substr(0, space)].push_back(line.substr(space + 1));
        }
    }
}

const std::vector<std::string>& go_client::said(const std::string& who) {
    read(0ms);
    return said_[who];
}

std::string go_client::ask(const std::string& who, const std::string& command) {
    const auto& all = said_[who];
    const auto before = all.size();
    send(who, command);
    for (const auto by = clock::now() + patience; all.size() == before;) {
        if (clock::now() > by) throw std::runtime_error("no answer to: " + who + " " + command);
        read(100ms);
    }
    return all[before];
}

}  // namespace trinco::detail::test
