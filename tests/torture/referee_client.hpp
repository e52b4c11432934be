// A process's line to the referee of the torture: one line asked, one line answered.
//
//     hello ID ROLE PID                who speaks; first on every connection
//     grant NAME TOKEN ASKED           a lock was granted that was asked for at that moment
//     plan UNTIL                       until then the command means to live, or the holder to hold
//     read NAME TOKEN                  -> value N | stale        the resource that checks tokens
//     write NAME TOKEN N               -> ok | stale
//     shadow NAME TOKEN                -> ok                     the one that does not
//     call BREAKER HOW ASKED           -> good | bad, when the dependency has answered; HOW:
//                                         normal, local (probe), fleet (probe), unknown
//     settle BREAKER                   before an outcome is given to a breaker
//     clean BREAKER N                  everything was sent: N outcomes of this process
//     health DESCRIPTORS RSS           of a process that lives long
//
// Times are microseconds of the boot clock.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/loop.hpp"

namespace trinco::torture {

[[nodiscard]] inline std::int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               detail::boot_clock::now().time_since_epoch())
        .count();
}

// Throws std::runtime_error when the referee is gone: then the torture is over.
class referee_client {
public:
    referee_client(const std::string& path, const std::string& role)
        : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        ::sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        const auto* const generic = reinterpret_cast<const ::sockaddr*>(&address);
        if (::connect(fd_, generic, sizeof address) != 0) throw std::runtime_error("no referee");
        const char* const id = std::getenv("TRINCO_TORTURE_ID");
        ask("hello " + std::string(id != nullptr ? id : "?") + " " + role + " " +
            std::to_string(::getpid()));
    }
    ~referee_client() { ::close(fd_); }
    referee_client(const referee_client&) = delete;
    referee_client& operator=(const referee_client&) = delete;

    std::string ask(std::string line) {
        line += '\n';
        if (::send(fd_, line.data(), line.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(line.size())) {
            throw std::runtime_error("the referee does not listen");
        }
        std::string answer;
        char c = 0;
        while (::recv(fd_, &c, 1, 0) == 1) {
            if (c == '\n') return answer;
            answer += c;
        }
        throw std::runtime_error("the referee does not answer");
    }

private:
    int fd_;
};

// The protocol of an increment that may be interrupted anywhere: read, think, write what was read
// plus one, to the resource that checks tokens and to the one that does not. False: the token is
// stale.
inline bool increment(referee_client& referee, const std::string& name, std::uint64_t token,
                      std::chrono::microseconds think) {
    const std::string key = name + " " + std::to_string(token);
    const auto seen = referee.ask("read " + key);
    ::usleep(static_cast<::useconds_t>(think.count()));
    referee.ask("shadow " + key);
    if (seen == "stale") return false;
    const auto value = std::stoull(seen.substr(seen.find(' ') + 1));
    return referee.ask("write " + key + " " + std::to_string(value + 1)) == "ok";
}

}  // namespace trinco::torture
