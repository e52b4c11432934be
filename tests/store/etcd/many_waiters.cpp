#include "tests/store/etcd/many_waiters.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "trinco/breaker_registry.hpp"
#include "trinco/etcd.hpp"
#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;

constexpr int patience_ms = 60'000;

// All that waits.
struct waiting_room {
    waiting_room(const std::string& url, const std::string& prefix, int many, int guarded)
        : local(trinco::open("memory:", {drivers::memory()})),
          where(trinco::open(url, {drivers::etcd()})),
          breakers(local),
          on(where) {
        for (int i = 0; i < guarded; ++i) breakers.get("b" + std::to_string(i)).call([] {});
        locks.reserve(static_cast<std::size_t>(many));
        for (int i = 0; i < many; ++i) {
            locks.push_back(std::make_unique<mutex>(on, prefix + std::to_string(i)));
            locks.back()->async_lock([this](std::error_code error) { granted += !error; });
        }
    }

    std::atomic<int> granted = 0;
    store local;
    store where;
    breaker_registry breakers;
    session on;
    std::vector<std::unique_ptr<mutex>> locks;
};

void lock_and_unlock(const std::string& url) {
    const auto where = trinco::open(url, {drivers::etcd()});
    session on(where);
    mutex m(on, "warm-up");
    m.lock();
    m.unlock();
}

void serve(const std::string& url, int commands) {
    std::unique_ptr<waiting_room> room;
    std::array<char, 512> said;
    for (ssize_t n = 0; (n = ::recv(commands, said.data(), said.size(), 0)) > 0;) {
        std::istringstream in(std::string(said.data(), static_cast<std::size_t>(n)));
        std::string what, prefix, answer = "done";
        int locks = 0, breakers = 0;
        in >> what >> prefix >> locks >> breakers;
        try {
            if (what == "warm") lock_and_unlock(url);
            if (what == "begin") {
                room = std::make_unique<waiting_room>(url, prefix, locks, breakers);
            }
            if (what == "end") {
                answer = std::to_string(room->granted);
                room.reset();
            }
        } catch (const std::exception& e) {
            answer = std::string("failed: ") + e.what();
        }
        if (::send(commands, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
    }
}

fs::path proc(::pid_t pid, const char* what) {
    return fs::path("/proc") / std::to_string(pid) / what;
}

int count_in(const fs::path& folder) {
    return static_cast<int>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

many_waiters::many_waiters(const std::string& url) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::runtime_error("no pair of sockets");
    }
    const auto parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no process");
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() == parent) {
            ::close(ends[0]);
            serve(url, ends[1]);
        }
        ::_exit(0);
    }
    ::close(ends[1]);
    ours_ = ends[0];
}

many_waiters::~many_waiters() {
    ::close(ours_);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

std::string many_waiters::ask(const std::string& line) {
    std::array<char, 512> said;
    ::pollfd answer{ours_, POLLIN, 0};
    if (::send(ours_, line.data(), line.size(), MSG_NOSIGNAL) < 0 ||
        ::poll(&answer, 1, patience_ms) != 1) {
        throw std::runtime_error("the waiting process does not answer: " + line);
    }
    const auto n = ::recv(ours_, said.data(), said.size(), 0);
    std::string text(said.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    if (n <= 0 || text.starts_with("failed")) {
        throw std::runtime_error("the waiting process: " + line + ": " + text);
    }
    return text;
}

void many_waiters::warm_up() {
    ask("warm");
}

void many_waiters::begin(const std::string& prefix, int locks, int breakers) {
    ask("begin " + prefix + " " + std::to_string(locks) + " " + std::to_string(breakers));
}

int many_waiters::end() {
    return std::stoi(ask("end"));
}

double many_waiters::memory_mib() const {
    std::ifstream in(proc(pid_, "status"));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("VmRSS:")) return std::atof(line.c_str() + 6) / 1'024;
    }
    return -1;
}

int many_waiters::threads_of_ours() const {
    int all = 1;
    for (const auto& one : fs::directory_iterator(proc(pid_, "task"))) {
        std::string name;
        std::getline(std::ifstream(one.path() / "comm"), name);
        all += name.starts_with("trinco");
    }
    return all;
}

int many_waiters::threads() const {
    return count_in(proc(pid_, "task"));
}

int many_waiters::descriptors() const {
    return count_in(proc(pid_, "fd"));
}

double many_waiters::seconds_on_core() const {
    clockid_t clock = 0;
    ::timespec used{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return -1;
    return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace trinco::detail::test
