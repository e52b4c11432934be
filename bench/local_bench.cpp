// What local: costs, beside its targets.
//
//     local_bench [--seconds N]      N: how long waiting processes are watched, 20 unless said
//
// The waiting ones are measured by the processor time that the kernel accounts to their processes,
// which is exact to the microsecond, while nothing happens to their locks.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "trinco/breaker_registry.hpp"
#include "trinco/local.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr int waiters = 200;
constexpr int many = 1'000;
constexpr double target_p50_us = 150;
constexpr double target_p99_us = 2'000;
constexpr double target_core_percent = 1;
constexpr double target_memory_mib = 64;
constexpr int target_threads = 6;

bool all_met = true;

void row(const char* what, double figure, const char* unit, double target) {
    const bool met = figure <= target;
    all_met = all_met && met;
    std::printf("%-58s %9.2f %-8s target <= %g  %s\n", what, figure, unit, target,
                met ? "met" : "MISSED");
    std::fflush(stdout);
}

class folder {
public:
    folder() {
        std::string name = (std::filesystem::temp_directory_path() / "trinco-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        path_ = name;
    }
    ~folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    folder(const folder&) = delete;
    folder& operator=(const folder&) = delete;
    [[nodiscard]] std::string url() const { return "local:" + (path_ / "local.db").string(); }

private:
    std::filesystem::path path_;
};

trinco::store open_store(const std::string& url) {
    return trinco::open(url, {trinco::drivers::local()});
}

double seconds_on_core(clockid_t clock) {
    ::timespec t{};
    ::clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void lock_and_unlock(const std::string& url) {
    constexpr int rounds = 20'000;
    const auto where = open_store(url);
    trinco::session on(where);
    trinco::mutex m(on, "uncontended");
    std::vector<double> took;
    took.reserve(rounds);
    for (int i = 0; i < rounds; ++i) {
        const auto before = clock_type::now();
        m.lock();
        m.unlock();
        took.push_back(
            std::chrono::duration<double, std::micro>(clock_type::now() - before).count());
    }
    std::sort(took.begin(), took.end());
    row("lock + unlock, uncontended, median", took[rounds / 2], "us", target_p50_us);
    row("the same, 99 of 100", took[rounds * 99 / 100], "us", target_p99_us);
    std::printf("%-58s %9.2f us\n", "the same, the longest", took.back());
}

// A process that says a byte when it has begun to wait, and waits for ever.
::pid_t start_waiter(const std::string& url, int ready, bool own_pid_space) {
    // As fork(), if need be into a PID namespace.
    const unsigned long how = SIGCHLD | (own_pid_space ? CLONE_NEWPID : 0);
    const auto child = static_cast<::pid_t>(::syscall(SYS_clone, how, 0, 0, 0, 0));
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string fd = std::to_string(ready);
    ::execl("/proc/self/exe", "local_bench", "--wait", url.c_str(), fd.c_str(), nullptr);
    ::_exit(127);
}

int wait_for_ever(const std::string& url, int ready) {
    const auto where = open_store(url);
    trinco::session on(where);
    trinco::mutex m(on, "held");
    m.async_lock([](std::error_code) {});
    std::this_thread::sleep_for(200ms);
    if (::write(ready, "x", 1) != 1) return 1;
    while (true) ::pause();
}

class flock_of_waiters {
public:
    flock_of_waiters(const std::string& url, bool own_pid_spaces) {
        int ends[2];
        if (::pipe(ends) != 0) std::abort();
        for (int i = 0; i < waiters; ++i) {
            const auto child = start_waiter(url, ends[1], own_pid_spaces);
            if (child > 0) all_.push_back(child);
        }
        ::close(ends[1]);
        for (char c = 0; ready_ < static_cast<int>(all_.size()) && ::read(ends[0], &c, 1) == 1;) {
            ++ready_;
        }
        ::close(ends[0]);
    }
    ~flock_of_waiters() {
        for (const auto pid : all_) ::kill(pid, SIGKILL);
        for (const auto pid : all_) ::waitpid(pid, nullptr, 0);
    }
    flock_of_waiters(const flock_of_waiters&) = delete;
    flock_of_waiters& operator=(const flock_of_waiters&) = delete;

    [[nodiscard]] int ready() const noexcept { return ready_; }
    [[nodiscard]] double seconds_used() const {
        double all = 0;
        for (const auto pid : all_) {
            clockid_t clock = 0;
            if (::clock_getcpuclockid(pid, &clock) == 0) all += seconds_on_core(clock);
        }
        return all;
    }

private:
    std::vector<::pid_t> all_;
    int ready_ = 0;
};

// Of a core, in percent. Negative: the processes did not come about.
double cost_of_processes(const std::string& url, bool own_pid_spaces,
                         std::chrono::seconds watched) {
    const auto where = open_store(url);
    trinco::session on(where, {.ttl = 60s});
    trinco::mutex m(on, "held");
    m.lock();
    const flock_of_waiters all(url, own_pid_spaces);
    if (all.ready() < waiters) return -1;
    std::this_thread::sleep_for(3s);
    const double before = all.seconds_used();
    std::this_thread::sleep_for(watched);
    return 100 * (all.seconds_used() - before) / static_cast<double>(watched.count());
}

double cost_in_one_process(const std::string& url, std::chrono::seconds watched) {
    const auto where = open_store(url);
    trinco::session on(where, {.ttl = 60s});
    std::vector<std::unique_ptr<trinco::mutex>> all;
    for (int i = 0; i < waiters; ++i) {
        all.push_back(std::make_unique<trinco::mutex>(on, "held"));
        all.back()->async_lock([](std::error_code) {});
    }
    std::this_thread::sleep_for(1s);
    const double before = seconds_on_core(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(watched);
    return 100 * (seconds_on_core(CLOCK_PROCESS_CPUTIME_ID) - before) /
           static_cast<double>(watched.count());
}

double status_of(const char* field) {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(field)) return std::atof(line.c_str() + std::strlen(field));
    }
    return -1;
}

// In a process of its own, so that nothing else counts.
int hold_many(const std::string& url) {
    const auto where = open_store(url);
    trinco::breaker_registry breakers(where);
    trinco::session holder(where, {.ttl = 60s});
    trinco::session waiting(where, {.ttl = 60s});
    std::vector<std::unique_ptr<trinco::mutex>> all;
    for (int i = 0; i < many; ++i) {
        auto& b = breakers.get("b" + std::to_string(i));
        b.call([] {});
    }
    for (int i = 0; i < many; ++i) {
        const std::string name = "many/" + std::to_string(i);
        all.push_back(std::make_unique<trinco::mutex>(holder, name));
        all.back()->lock();
        all.push_back(std::make_unique<trinco::mutex>(waiting, name));
        all.back()->async_lock([](std::error_code) {});
    }
    std::this_thread::sleep_for(3s);
    row("memory: 1,000 breakers, 1,000 waiting locks", status_of("VmRSS:") / 1'024, "MiB",
        target_memory_mib);
    row("its threads, the main one among them", status_of("Threads:"), "", target_threads + 1);
    const double before = seconds_on_core(CLOCK_PROCESS_CPUTIME_ID);
    std::this_thread::sleep_for(5s);
    std::printf("%-58s %9.2f %% of a core\n", "what it costs while nothing happens",
                20 * (seconds_on_core(CLOCK_PROCESS_CPUTIME_ID) - before));
    std::fflush(stdout);
    ::_exit(all_met ? 0 : 1);
}

int run_apart(const char* what, const std::string& url) {
    const auto child = ::fork();
    if (child == 0) {
        ::execl("/proc/self/exe", "local_bench", what, url.c_str(), nullptr);
        ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int run(std::chrono::seconds watched) {
    lock_and_unlock(folder().url());
    {
        const folder in;
        row("200 waiting processes", cost_of_processes(in.url(), false, watched), "% core",
            target_core_percent);
    }
    {
        const folder in;
        row("200 waiting locks of one process", cost_in_one_process(in.url(), watched), "% core",
            target_core_percent);
    }
    {
        const folder in;
        const double cost = cost_of_processes(in.url(), true, watched);
        if (cost < 0) {
            std::printf("200 waiting processes, a PID namespace each: not allowed here\n");
        } else {
            row("200 waiting processes, a PID namespace each", cost, "% core", target_core_percent);
        }
    }
    const folder in;
    if (run_apart("--many", in.url()) != 0) all_met = false;
    std::puts(all_met ? "all targets are met" : "not all targets are met");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 3 && words[0] == "--wait") {
        return wait_for_ever(words[1], std::atoi(words[2].c_str()));
    }
    if (words.size() == 2 && words[0] == "--many") return hold_many(words[1]);
    if (words.size() == 2 && words[0] == "--seconds") {
        return run(std::chrono::seconds(std::max(1, std::atoi(words[1].c_str()))));
    }
    return run(20s);
}
