// A holder of a lock who writes under its guard, and may be stopped just before: a process of its
// own, which is forked before a store is opened here.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "trinco/guarded_write.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {

inline void tell_line(int out, std::string line) {
    line += '\n';
    if (::write(out, line.data(), line.size()) < 0) throw std::runtime_error("nobody listens");
}

// Answers commands, a line each: lock (its lease); make VALUE; commit (written, refused); keep;
// look-stop-commit (holds or lost, and when it goes on as commit).
inline void serve_late_writer(const std::string& url, const driver& by, const std::string& key,
                              std::chrono::seconds ttl, int out) {
    const auto where = trinco::open(url, {by});
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
            guarded_write(m).put("short:1", "x").keep_for(std::chrono::seconds(60)).commit();
        } else {
            if (word == "look-stop-commit") {
                tell_line(out, m.held() ? "holds" : "lost");
                ::raise(SIGSTOP);  // all threads; it has looked, and goes on below
            }
            std::error_code error;
            made->commit(error);
            said = error == errc::lost ? "refused" : error ? error.message() : "written";
        }
        tell_line(out, said);
    }
}

class late_writer {
public:
    late_writer(const std::string& url, const driver& by, const std::string& key,
                std::chrono::seconds ttl) {
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
                serve_late_writer(url, by, key, ttl, from[1]);
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
    late_writer(const late_writer&) = delete;
    late_writer& operator=(const late_writer&) = delete;
    ~late_writer() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        ::close(in_);
        ::close(out_);
    }
    void wait_until_stopped() const { ::waitpid(pid_, nullptr, WUNTRACED); }
    void go_on() const { ::kill(pid_, SIGCONT); }
    // It has looked, and stands still with the write in its hand.
    void look_and_stop() const {
        ask("make late");
        if (ask("look-stop-commit") != "holds") throw std::runtime_error("it holds nothing");
        wait_until_stopped();
    }
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
        tell_line(out_, line);
        return hear();
    }

private:
    ::pid_t pid_ = -1;
    int in_ = -1;
    int out_ = -1;
};

}  // namespace trinco::detail::test
