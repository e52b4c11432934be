// Who believes to hold a lock, and when: one process of the torture on etcd.
//
//     belief_child hold URL FILE NAME...   takes these locks, one at a time, until its stdin ends
//     belief_child careless URL FILE NAME...   the same, and forgets to look whether it still holds
//     belief_child under FILE SECONDS      the command of `trinco lock`: it holds while it runs
//
// A line of FILE, appended at once: NAME TOKEN FROM TO, microseconds of the boot clock; at some
// instant between the two it held the lock, as far as it knew.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/loop.hpp"
#include "trinco/etcd.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;

constexpr auto ttl = 3s;  // as in the driver
constexpr auto look_every = 2ms;

std::int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               trinco::detail::boot_clock::now().time_since_epoch())
        .count();
}

class diary {
public:
    explicit diary(const std::string& file)
        : fd_(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
    ~diary() { ::close(fd_); }
    diary(const diary&) = delete;
    diary& operator=(const diary&) = delete;

    void note(const std::string& name, std::uint64_t token, std::int64_t from, std::int64_t to) {
        const std::string line = name + " " + std::to_string(token) + " " + std::to_string(from) +
                                 " " + std::to_string(to) + "\n";
        if (::write(fd_, line.data(), line.size()) != static_cast<::ssize_t>(line.size())) {
            std::perror("belief_child: the file");
            std::_Exit(2);
        }
    }

private:
    int fd_;
};

class holder {
public:
    holder(const std::string& url, const std::string& file, std::vector<std::string> names,
           bool is_careless)
        : where_(trinco::open(url, {trinco::drivers::etcd()})),
          diary_(file),
          names_(std::move(names)),
          is_careless_(is_careless) {}

    void run() {
        std::thread end([this] {
            char c = 0;
            while (::read(STDIN_FILENO, &c, 1) > 0) {
            }
            over_ = true;
        });
        while (!over_) take_turns();
        end.join();
    }

private:
    void take_turns() {
        std::error_code error;
        trinco::session on(where_, {.ttl = ttl}, error);
        if (error) {
            std::this_thread::sleep_for(100ms);
            return;
        }
        while (!over_ && on.state() != trinco::session_state::lost) {
            trinco::mutex m(on, names_[random_() % names_.size()]);
            if (m.try_lock_for(2s, error)) hold(m);
        }
    }

    void hold(const trinco::mutex& m) {
        const auto token = m.fencing_token();
        // So many looks, however long that takes: a pause in between does not end it.
        for (auto looks = 10 + random_() % 200; looks > 0; --looks) {
            const auto from = now_us();
            const bool holds = is_careless_ || m.held();
            const auto to = now_us();
            if (!holds) return;
            diary_.note(m.name(), token, from, to);
            std::this_thread::sleep_for(look_every);
        }
    }

    const trinco::store where_;
    diary diary_;
    const std::vector<std::string> names_;
    const bool is_careless_;
    std::atomic<bool> over_{false};
    std::minstd_rand random_{std::random_device{}()};
};

int under(const std::string& file, const std::string& seconds) {
    const char* const name = std::getenv("TRINCO_LOCK");
    const char* const token = std::getenv("TRINCO_TOKEN");
    if (name == nullptr || token == nullptr) return 3;
    diary to(file);
    const auto until = now_us() + static_cast<std::int64_t>(std::stod(seconds) * 1e6);
    for (auto now = now_us(); now < until; now = now_us()) {
        to.note(name, std::stoull(token), now, now);
        std::this_thread::sleep_for(look_every);
    }
    return 0;
}

int run(const std::vector<std::string>& words) {
    const std::string what = words.size() > 3 ? words[1] : "";
    if (what == "under") return under(words[2], words[3]);
    if (words.size() > 4 && (what == "hold" || what == "careless")) {
        holder(words[2], words[3], {words.begin() + 4, words.end()}, what == "careless").run();
        return 0;
    }
    std::fputs("belief_child: hold | careless URL FILE NAME..., under FILE SECONDS\n", stderr);
    return 64;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run({argv, argv + argc});
    } catch (const std::exception& e) {
        std::fprintf(stderr, "belief_child: %s\n", e.what());
        return 2;
    }
}
