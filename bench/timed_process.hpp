// What is compared, in processes of their own that measure themselves and take turns.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

#include "bench/figures.hpp"

namespace trinco::bench {

// A process of its own, since several clients in one get in each other's way; it says how long what
// it was asked for took. It is forked, before this one opens a store.
class timed_process {
public:
    // `make`, in the new process, makes what is done each time.
    explicit timed_process(const std::function<std::function<void()>()>& make) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::close(ends[0]);
            serve(make(), ends[1]);
            ::_exit(0);
        }
        ::close(ends[1]);
        ours_ = ends[0];
    }
    ~timed_process() {
        ::close(ours_);
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    timed_process(const timed_process&) = delete;
    timed_process& operator=(const timed_process&) = delete;

    double microseconds() {
        double took = 0;
        if (::send(ours_, "x", 1, 0) != 1 || ::recv(ours_, &took, sizeof took, 0) != sizeof took) {
            std::abort();
        }
        return took;
    }

private:
    static void serve(const std::function<void()>& act, int commands) {
        for (char c = 0; ::recv(commands, &c, 1, 0) == 1;) {
            const auto begin = clock_type::now();
            act();
            const double took = microseconds_since(begin);
            if (::send(commands, &took, sizeof took, 0) != sizeof took) return;
        }
    }

    ::pid_t pid_ = -1;
    int ours_ = -1;
};

// One operation of each at a time, in an order that changes with each round, so that what the disk
// and the machine do meets all. What each of them took, after the first 100 rounds.
[[nodiscard]] inline std::vector<std::vector<double>> take_turns(
    const std::vector<std::function<double()>>& sides, int rounds) {
    constexpr int warm_up = 100;
    std::vector<std::vector<double>> took(sides.size());
    std::vector<std::size_t> order(sides.size());
    std::iota(order.begin(), order.end(), 0U);
    for (int i = 0; i < rounds + warm_up; ++i) {
        for (const auto turn : order) {
            const double now = sides[turn]();
            if (i >= warm_up) took[turn].push_back(now);
        }
        std::next_permutation(order.begin(), order.end());
    }
    return took;
}

}  // namespace trinco::bench
