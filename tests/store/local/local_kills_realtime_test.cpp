// A thousand kills: processes that lock, count and write records on one file die at any point of
// their transactions, and of opening and making the file. Nothing that was answered is lost,
// nothing counts twice, tokens grow, and the file stays sound.
//
//     TRINCO_KILLS=100000 TRINCO_SEED=7 build/release/tests/store/local/local_kills_realtime_test
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "store/local/local_breakers.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "tests/store/local/lock_client.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t slots = 4;  // processes at a time
constexpr std::size_t most_tokens = 1U << 18U;
constexpr auto patience = 60s;

// What the processes did, in memory that all share: it outlives whoever is killed.
struct ledger {
    struct account {
        std::atomic<std::uint64_t> sent;  // numbers of exchanges
        std::atomic<std::uint64_t> answered;
    };
    std::array<account, slots> of;
    std::atomic<std::uint64_t> granted;  // how many tokens
    std::array<std::atomic<std::uint64_t>, most_tokens> tokens;
    std::atomic<std::uint64_t> inside;  // who holds the lock: its token
    std::atomic<std::uint64_t> overlaps;
    std::atomic<std::uint64_t> record_sent;
    std::atomic<std::uint64_t> record_answered;
};

class shared_ledger {
public:
    shared_ledger() {
        void* const at = ::mmap(nullptr, sizeof(ledger), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
        all_ = new (at) ledger();
    }
    ~shared_ledger() { ::munmap(all_, sizeof(ledger)); }
    shared_ledger(const shared_ledger&) = delete;
    shared_ledger& operator=(const shared_ledger&) = delete;
    ledger& operator*() noexcept { return *all_; }
    ledger* operator->() noexcept { return all_; }

private:
    ledger* all_;
};

// The number in the environment, or this one.
std::uint64_t number_or(const char* variable, std::uint64_t usual) {
    const char* const text = std::getenv(variable);
    return text != nullptr ? std::stoull(text) : usual;
}

std::string name_of(std::size_t slot) {
    return "i" + std::to_string(slot);
}

// Exchanges of one instance, which a successor of a killed process goes on with: what was under way
// is sent again, and counts once.
class counter {
public:
    counter(const local_settings& settings, ledger::account& a, std::size_t slot)
        : store_(on_, std::make_shared<local_worker>(settings, "local:x"), "default",
                 {name_of(slot), name_of(slot)}),
          account_(a) {
        news_.breaker = "payments";
        news_.options = to_text(suite_policy());
        news_.slices.push_back({{1, 0, 0, 0, 0, 0}, milliseconds(0)});
    }
    bool finish() { return account_.answered == account_.sent || exchange(account_.sent); }
    bool count() { return exchange(++account_.sent); }

private:
    bool exchange(std::uint64_t seq) {
        news_.seq = seq;
        bool over = false;
        bool answered = false;
        const op waiting =
            store_.exchange({&news_, 1}, on_.now() + patience,
                            [&](std::error_code error, const std::vector<verdict>& v) {
                                over = true;
                                answered = !error && !v.at(0).error;
                                if (answered) news_.mine = v[0].fleet;
                            });
        on_.run_until([&] { return over; }, patience);
        if (answered) account_.answered = seq;
        return answered;
    }

    driven_loop on_;
    local_breakers store_;
    ledger::account& account_;
    news news_;
};

// What one process does until it is killed. Returns only when something went wrong.
int work(const local_settings& settings, ledger& all, std::size_t slot) {
    lock_client locks(settings);
    counter counts(settings, all.of.at(slot), slot);
    if (!counts.finish()) return 10;
    const auto on = locks.open();
    for (std::uint64_t id = 1;; ++id) {
        if (!counts.count()) return 11;
        if (locks.enter(on, id, "n")) return 12;
        const auto token = locks.await(on, id, patience).value_or(0);
        if (token == 0) return 13;
        const auto at = all.granted++;
        if (at >= most_tokens) return 14;
        all.tokens.at(at) = token;
        all.inside = token;
        if (id % 4 == slot) {
            const auto [text, revision] = locks.read("record").value_or(record{"0", 0});
            all.record_sent = std::stoull(text) + 1;
            if (locks.write(on, id, {"record", std::to_string(all.record_sent), revision})) {
                return 15;
            }
            all.record_answered.store(all.record_sent);
        }
        if (all.inside != token) ++all.overlaps;
        locks.leave(on, id);
    }
}

::pid_t start(const std::function<int()>& what) {
    const auto pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid > 0) return pid;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = 1;
    try {
        code = what();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "a child: %s\n", e.what());
    }
    ::_exit(code);
}

// How it ended, as shells say it.
int kill_and_wait(::pid_t pid) {
    ::kill(pid, SIGKILL);
    int raw = 0;
    while (::waitpid(pid, &raw, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

// Between the two, each order of magnitude as likely as the others.
void pass_between(std::mt19937& random, std::chrono::microseconds least,
                  std::chrono::microseconds most) {
    const double share = static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
    const auto us =
        static_cast<double>(least.count()) *
        std::pow(static_cast<double>(most.count()) / static_cast<double>(least.count()), share);
    const ::timespec t{0, static_cast<long>(us * 1'000)};
    ::nanosleep(&t, nullptr);
}

bool is_sound(const local_settings& settings) {
    sqlite_database db(settings.file.string());
    return db.number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") ==
           1;
}

class LocalKills : public ::testing::Test {
protected:
    void begin(std::size_t slot) {
        running_.at(slot) = start([&] { return work(settings_, *all_, slot); });
    }
    void kill(std::size_t slot) {
        EXPECT_EQ(kill_and_wait(running_.at(slot)), 128 + SIGKILL) << "it had given up";
        ++kills_;
    }
    void kill_many(std::uint64_t wanted) {
        for (std::size_t i = 0; i < slots; ++i) begin(i);
        while (kills_ < wanted && !HasFailure()) {
            pass_between(random_, 20us, 10ms);
            if (kills_ % 40 < 36) {
                const auto slot = random_() % slots;
                kill(slot);
                begin(slot);
            } else {  // all: the next one finds a log that nobody has in memory
                for (std::size_t i = 0; i < slots; ++i) kill(i);
                for (std::size_t i = 0; i < slots; ++i) begin(i);
                pass_between(random_, 10ms, 30ms);
            }
        }
        for (std::size_t i = 0; i < slots; ++i) kill(i);
    }
    // All tokens in the order of holding.
    std::vector<std::uint64_t> tokens() {
        std::vector<std::uint64_t> all;
        for (std::uint64_t i = 0; i < all_->granted; ++i) {
            const std::uint64_t token = all_->tokens.at(i);
            if (token != 0) all.push_back(token);  // else killed before it had said so
        }
        return all;
    }
    // What was under way at the end is sent again; how many there are then.
    std::uint64_t finish_counting() {
        std::uint64_t sent = 0;
        for (std::size_t i = 0; i < slots; ++i) {
            counter successor(settings_, all_->of.at(i), i);
            EXPECT_TRUE(successor.finish());
            sent += all_->of.at(i).sent;
        }
        return sent;
    }
    std::uint64_t counted() {
        driven_loop on;
        local_breakers store(on, std::make_shared<local_worker>(settings_, "local:x"), "default",
                             {"reader", "reader"});
        std::optional<std::uint64_t> found;
        const op asked =
            store.inspect("", "", 10, on.now() + patience, [&](std::error_code, const page& p) {
                found = p.rows.empty() ? 0 : p.rows[0].totals.success;
            });
        on.run_until([&] { return found.has_value(); }, patience);
        return found.value_or(0);
    }

    scratch_folder folder_;
    local_settings settings_ = local_settings_for(folder_.file());
    shared_ledger all_;
    std::mt19937 random_{static_cast<std::uint32_t>(number_or("TRINCO_SEED", 1))};
    std::array<::pid_t, slots> running_{};
    std::uint64_t kills_ = 0;
};

TEST_F(LocalKills, AThousandKillsLoseNothingAndCountNothingTwice) {
    kill_many(number_or("TRINCO_KILLS", 1'000));
    EXPECT_TRUE(is_sound(settings_));
    const auto granted = tokens();
    EXPECT_EQ(std::adjacent_find(granted.begin(), granted.end(), std::greater_equal<>()),
              granted.end())
        << "a token did not grow";
    EXPECT_EQ(all_->overlaps, 0U) << "two were inside at once";
    const auto sent = finish_counting();
    EXPECT_EQ(counted(), sent);
    lock_client next(settings_);
    const auto kept = next.read("record");
    ASSERT_TRUE(kept.has_value());
    const auto written = std::stoull(kept->value);
    EXPECT_GE(written, all_->record_answered.load()) << "an answered one was lost";
    EXPECT_LE(written, all_->record_sent.load());
    EXPECT_EQ(next.entries_of(""), 0U) << "the dead are still in the queue";
    const auto on = next.open();
    ASSERT_FALSE(next.enter(on, 1, "n"));
    EXPECT_GT(next.await(on, 1, 5s).value_or(0), granted.back()) << "the file is of use";
    // It was no idle time: most lives got as far as to do something.
    EXPECT_GT(granted.size(), 500U);
    EXPECT_GT(sent, 500U);
    EXPECT_GT(written, 50U);
    RecordProperty("grants", static_cast<int>(granted.size()));
    RecordProperty("exchanges", static_cast<int>(sent));
}

TEST_F(LocalKills, AFileWhoseMakerIsKilledIsMadeByTheNext) {
    int unfinished = 0;
    for (int i = 0; i < 200 && !HasFailure(); ++i) {
        const scratch_folder folder;
        const auto settings = local_settings_for(folder.file());
        const std::uint64_t before = all_->granted;
        const auto maker = start([&] { return work(settings, *all_, 0); });
        pass_between(random_, 20us, 20ms);
        EXPECT_EQ(kill_and_wait(maker), 128 + SIGKILL);
        if (all_->granted == before) ++unfinished;
        {
            lock_client next(settings);
            const auto on = next.open();
            ASSERT_FALSE(next.enter(on, 1, "n"));
            EXPECT_TRUE(next.await(on, 1, 5s).has_value());
        }
        EXPECT_TRUE(is_sound(settings));
    }
    EXPECT_GT(unfinished, 50) << "killed while the file was made";
}

}  // namespace
}  // namespace trinco::detail::test
