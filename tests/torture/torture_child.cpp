// The processes of the torture that are ours. The referee's socket is named by TRINCO_TORTURE_AT.
//
//     torture_child library FILE        locks and breakers of one process, until its stdin ends
//     torture_child command SECONDS     under `trinco lock`: increments, with a child of its own
//     torture_child callee HOW          under `trinco call`: calls the dependency, exit code 0 or 1
//     torture_child count FILE NAME     as an instance of that name, gives the store a success at a
//                                       time and says, a line each, how many were acknowledged
//     torture_child visit FILE          opens a session and closes it: who comes by tidies up
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "store/local/local_breakers.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/torture/referee_client.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/local.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::torture {
namespace {

using namespace std::chrono_literals;

constexpr std::array<const char*, 4> names = {"a", "b", "long/1", "long/2"};
constexpr const char* dependency = "dep";
constexpr auto ttl = 3s;

std::string referee_path() {
    const char* const path = std::getenv("TRINCO_TORTURE_AT");
    return path != nullptr ? path : "";
}

// The same as in the driver's trinco.toml.
breaker_options policy() {
    breaker_options o;
    o.minimum_calls = 10;
    o.window = 2s;
    o.open_for = 300ms;
    o.open_backoff = 1.5;
    o.open_max = 1s;
    o.half_open_probes = 3;
    o.probe_timeout = 2s;
    o.quorum = 1;
    o.live_for = 10s;
    o.store_timeout = 500ms;
    o.degraded_after = 5s;
    return o;
}

class library_process {
public:
    explicit library_process(const std::string& file)
        : url_("local:" + file), where_(trinco::open(url_, {drivers::local()})) {
        std::random_device seed;
        random_.seed(seed());
    }

    int run() {
        std::thread locks([this] { guarded([this] { lock_for_ever(); }); });
        std::thread calls([this] { guarded([this] { call_for_ever(); }); });
        char c = 0;
        while (::read(STDIN_FILENO, &c, 1) > 0) {
        }
        over_ = true;
        locks.join();
        calls.join();
        return broken_ ? 1 : 0;
    }

private:
    template <class F>
    void guarded(F f) {
        try {
            f();
        } catch (const std::exception& e) {
            std::fprintf(stderr, "torture_child: %s\n", e.what());
            broken_ = true;
        }
    }
    std::uint64_t below(std::uint64_t n) { return random_() % n; }

    void lock_for_ever() {
        referee_client referee(referee_path(), "library");
        std::optional<session> on;
        std::int64_t told = 0;
        while (!over_) {
            if (now_us() > told + 1'000'000) {
                tell_health(referee);
                told = now_us();
            }
            std::error_code error;
            if (!on || on->state() == session_state::lost) {
                on.emplace(where_, session_options{.ttl = ttl}, error);
                if (error) std::this_thread::sleep_for(50ms);
                continue;
            }
            const std::string name = names.at(below(20) == 0 ? 2 + below(2) : below(2));
            const auto asked = now_us();
            mutex m(*on, name);
            if (!m.try_lock_for(1s, error)) continue;
            const auto token = m.fencing_token();
            referee.ask("grant " + name + " " + std::to_string(token) + " " +
                        std::to_string(asked));
            // Whether it still holds is not asked: that is what the token is for.
            const bool is_slow = below(10) == 0;
            if (is_slow) referee.ask("plan " + std::to_string(now_us() + 250'000));
            for (auto n = is_slow ? 60 : 1 + below(3); n > 0; --n) {
                if (!increment(referee, name, token, std::chrono::microseconds(below(8'000))))
                    break;
            }
        }
    }

    void tell_health(referee_client& referee) {
        int open = 0;
        for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
            static_cast<void>(one);
            ++open;
        }
        std::ifstream statm("/proc/self/statm");
        std::int64_t size = 0;
        std::int64_t resident = 0;
        statm >> size >> resident;
        referee.ask("health " + std::to_string(open) + " " + std::to_string(resident * 4'096));
    }

    static const char* kind_of(const permit& p, const snapshot& before, const snapshot& after) {
        if (!p.is_probe()) return "normal";
        if (before.degraded != after.degraded) return "unknown";
        const bool fleets = before.fleet_state && *before.fleet_state != breaker_state::closed &&
                            after.fleet_state && *after.fleet_state != breaker_state::closed;
        return fleets && !before.degraded ? "fleet" : "local";
    }

    void call_for_ever() {
        referee_client referee(referee_path(), "library");
        std::uint64_t settled = 0;
        {
            breaker_registry breakers(where_);
            breakers.configure(dependency, policy());
            auto& b = breakers.get(dependency);
            while (!over_) {
                std::this_thread::sleep_for(std::chrono::milliseconds(10 + random_calls_() % 40));
                const auto before = b.snapshot();
                const auto asked = now_us();
                auto p = b.try_acquire();
                if (!p) continue;
                const std::string kind = kind_of(p, before, b.snapshot());
                const auto answer = referee.ask(std::string("call ") + dependency + " " + kind +
                                                " " + std::to_string(asked));
                referee.ask(std::string("settle ") + dependency);
                ++settled;
                p.settle(answer == "good" ? outcome::success : outcome::failure);
            }
        }
        referee.ask(std::string("clean ") + dependency + " " + std::to_string(settled));
    }

    std::string url_;
    store where_;
    std::atomic<bool> over_{false};
    std::atomic<bool> broken_{false};
    std::mt19937_64 random_;                                 // of the thread that locks
    std::minstd_rand random_calls_{std::random_device{}()};  // of the one that calls
};

// Works until its time is over, with a child that outlives it by a moment and left its group.
int command(const std::string& seconds) {
    const auto until = now_us() + static_cast<std::int64_t>(std::stod(seconds) * 1e6);
    int ends[2];
    if (::pipe(ends) != 0) return 2;
    const auto child = ::fork();
    if (child == 0) {
        ::setsid();
        ::close(ends[1]);
        char c = 0;
        while (::read(ends[0], &c, 1) > 0) {
        }
        ::usleep(100'000);
        ::_exit(0);
    }
    ::close(ends[0]);
    const char* const token = std::getenv("TRINCO_TOKEN");
    const char* const name = std::getenv("TRINCO_LOCK");
    const char* const asked = std::getenv("TRINCO_TORTURE_ASKED");
    if (token == nullptr || name == nullptr || asked == nullptr) return 3;
    referee_client referee(referee_path(), "command");
    referee.ask("plan " + std::to_string(until));
    referee.ask("grant " + std::string(name) + " " + token + " " + asked);
    std::minstd_rand random{std::random_device{}()};
    while (now_us() < until) {
        const bool is_fresh = increment(referee, name, std::stoull(token),
                                        std::chrono::microseconds(1'000 + random() % 10'000));
        if (!is_fresh) return 4;
    }
    return 0;
}

int callee(const std::string& how) {
    referee_client referee(referee_path(), "callee");
    const char* const asked = std::getenv("TRINCO_TORTURE_ASKED");
    const auto answer = referee.ask(std::string("call ") + dependency + " " + how + " " +
                                    (asked != nullptr ? asked : "0"));
    return answer == "good" ? 0 : 1;
}

// At the contract of stores, where an acknowledgement can be seen.
int count(const std::string& file, const std::string& name) {
    using namespace trinco::detail;
    test::driven_loop on;
    auto worker = std::make_shared<local_worker>(local_settings_for(file), "local:" + file);
    local_breakers store(on, std::move(worker), "default", {name, name});
    news n;
    n.breaker = "counted";
    n.slices.push_back({{1, 0, 0, 0, 0, 0}, std::chrono::milliseconds(0)});
    while (true) {
        ++n.seq;
        bool answered = false;
        while (!answered) {
            bool over = false;
            const op waiting = store.exchange(
                {&n, 1}, on.now() + 5s, [&](std::error_code error, const std::vector<verdict>& v) {
                    over = true;
                    answered = !error && !v.at(0).error;
                    if (answered) n.mine = v[0].fleet;
                });
            on.run_until([&] { return over; }, 1h);
        }
        std::printf("%llu\n", static_cast<unsigned long long>(n.seq));
        std::fflush(stdout);
        on.run_for(3ms);
    }
}

int visit(const std::string& file) {
    const auto where = trinco::open("local:" + file, {drivers::local()});
    session on(where, {.ttl = 1s});
    mutex m(on, "visit");
    m.lock();
    m.unlock();
    return 0;
}

int run(const std::vector<std::string>& words) {
    const std::string mode = words.size() > 2 ? words[1] : "";
    if (mode == "library") return library_process(words[2]).run();
    if (mode == "command") return command(words[2]);
    if (mode == "callee") return callee(words[2]);
    if (mode == "count" && words.size() > 3) return count(words[2], words[3]);
    if (mode == "visit") return visit(words[2]);
    std::fputs("torture_child: library | command | callee | count | visit\n", stderr);
    return 64;
}

}  // namespace
}  // namespace trinco::torture

int main(int argc, char** argv) {
    try {
        return trinco::torture::run({argv, argv + argc});
    } catch (const std::exception& e) {
        std::fprintf(stderr, "torture_child: %s\n", e.what());
        return 1;
    }
}
