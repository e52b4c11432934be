// What locks on etcd cost, beside their targets, on a server of its own.
//
//     etcd_bench [ROUNDS]      of lock + unlock, 2,000 unless said
//
// What is compared takes turns (timed_process.hpp). Waiting processes are looked at from outside.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/etcd_counted.hpp"
#include "bench/figures.hpp"
#include "bench/timed_process.hpp"
#include "tests/store/etcd/bare_etcd.hpp"
#include "tests/store/etcd/many_waiters.hpp"
#include "tests/store/etcd/test_etcd.hpp"
#include "tests/store/go_client.hpp"
#include "trinco/etcd.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using namespace trinco::bench;
using trinco::detail::test::bare_etcd;
using trinco::detail::test::go_client;
using trinco::detail::test::many_waiters;
using trinco::detail::test::test_etcd;

constexpr int queue_length = 1'000;
constexpr int hand_overs = 300;
constexpr int many = 10'000;

std::function<void()> make_ours(const std::string& url) {
    const auto where =
        std::make_shared<trinco::store>(trinco::open(url, {trinco::drivers::etcd()}));
    const auto on = std::make_shared<trinco::session>(*where);
    const auto m = std::make_shared<trinco::mutex>(*on, "ours");
    return [where, on, m] {
        m->lock();
        m->unlock();
    };
}

std::function<void()> make_bare(std::uint16_t port) {
    const auto bare = std::make_shared<bare_etcd>(port);
    return [=] {
        bare->commit("bare");
        bare->commit("bare");
    };
}

std::function<void()> make_own_steps(std::uint16_t port, const std::string& lease) {
    const auto bare = std::make_shared<bare_etcd>(port);
    return [=, id = std::stoll(lease, nullptr, 16)] { bare->enter_and_leave("steps", id); };
}

void lock_and_unlock(figures& out, timed_process& locks, timed_process& commits,
                     timed_process& steps, go_client* go, int rounds) {
    std::vector<std::function<double()>> sides{[&] { return locks.microseconds(); },
                                               [&] { return commits.microseconds(); },
                                               [&] { return steps.microseconds(); }};
    if (go != nullptr) {
        sides.emplace_back([&] {
            const auto said = go->ask("g", "time theirs");  // "took NANOSECONDS"
            return std::atof(said.c_str() + said.find(' ')) / 1'000;
        });
    }
    const auto took = take_turns(sides, rounds);
    const double ours = median(took[0]), two_commits = median(took[1]), own_steps = median(took[2]);
    figures::beside("lock + unlock, uncontended, median", ours, "us");
    figures::beside("the same, 99 of 100", share(took[0], 0.99), "us");
    figures::beside("two bare commits, median", two_commits, "us");
    out.most("lock + unlock / two bare commits", ours / two_commits, "", 1.1);
    figures::beside("the transactions of a lock, bare, median", own_steps, "us");
    figures::beside("lock + unlock / these", ours / own_steps, "");
    if (go == nullptr) {
        std::puts("Go's client was not built: `make servers` builds it where Go is");
        return;
    }
    figures::beside("Lock + Unlock of Go's client, median", median(took[3]), "us");
    out.most("lock + unlock / that of Go's client", ours / median(took[3]), "", 1.02);
}

// Each holder's release, until the next one is told.
void hand_over(figures& out, trinco::store& where, etcd_counts& counts, bare_etcd& bare) {
    trinco::session on(where, {.ttl = 60s, .request_timeout = 30s});
    std::vector<std::unique_ptr<trinco::mutex>> all;
    struct grant_of {
        trinco::mutex* to = nullptr;
        clock_type::time_point at;
    };
    std::vector<std::promise<grant_of>> granted(queue_length);
    std::atomic<std::size_t> woken = 0;
    for (int i = 0; i < queue_length; ++i) {
        all.push_back(std::make_unique<trinco::mutex>(on, "queue"));
        all.back()->async_lock([&, m = all.back().get()](std::error_code error) {
            if (!error) granted[woken++].set_value({m, clock_type::now()});
        });
    }
    while (bare.count("queue/") < queue_length) std::this_thread::sleep_for(10ms);
    auto holder = granted[0].get_future().get();
    bare.watch("bare/watched");
    std::vector<double> ours, theirs;
    const int commits = counts.commits, reads = counts.reads, events = counts.events;
    for (std::size_t i = 0; i < hand_overs; ++i) {
        auto next = granted[i + 1].get_future();
        const auto begin = clock_type::now();
        holder.to->unlock();
        holder = next.get();
        ours.push_back(std::chrono::duration<double, std::micro>(holder.at - begin).count());
        const auto again = clock_type::now();
        bare.hand_over("bare/watched");
        theirs.push_back(microseconds_since(again));
    }
    const auto each = [](int now, int before) { return double(now - before) / hand_overs; };
    figures::beside("hand-over to the next of 1,000 waiters, median", median(ours), "us");
    figures::beside("a bare commit, its event and a read, median", median(theirs), "us");
    out.most("commits a hand-over", each(counts.commits, commits), "", 1);
    out.most("events of watches a hand-over", each(counts.events, events), "", 1);
    out.most("reads a hand-over", each(counts.reads, reads), "", 1);
    out.most("waiters woken a hand-over", each(static_cast<int>(woken), 1), "", 1);
    all.clear();
}

void waiting(figures& out, const test_etcd& server, bare_etcd& bare, many_waiters& process,
             int locks, int breakers) {
    process.warm_up();
    std::this_thread::sleep_for(2s);
    const int descriptors = process.descriptors();
    const auto held = bare.hold("many/", locks);
    const auto begin = clock_type::now();
    process.begin("many/", locks, breakers);
    while (bare.count("many/") < 2 * locks) std::this_thread::sleep_for(10ms);
    std::printf("%d locks wait after %.1f s\n", locks, microseconds_since(begin) * 1e-6);
    std::this_thread::sleep_for(3s);
    if (breakers > 0) {
        out.most("memory: 1,000 breakers, 1,000 waiting locks", process.memory_mib(), "MiB", 64);
        out.most("its threads of ours, the main one among them", process.threads_of_ours(), "", 7);
        out.most("its threads, whosever they are", process.threads(), "", 7);
    } else {
        out.most("memory: 10,000 waiting locks", process.memory_mib(), "MiB", 160);
        out.most("its threads of ours, the main one among them", process.threads_of_ours(), "", 7);
    }
    const double used = process.seconds_on_core();
    std::this_thread::sleep_for(10s);
    figures::beside("what it costs while nothing happens", 10 * (process.seconds_on_core() - used),
                    "% of a core");
    out.most("granted although held", process.end(), "", 0);
    std::this_thread::sleep_for(2s);
    out.most("left: keys", double(bare.count("many/") - locks), "", 0);
    bare.revoke(held);
    const auto leases = server.must({"lease", "list"});  // "found N leases"
    out.most("left: leases", std::atof(leases.c_str() + 6), "", 0);
    out.most("left: threads of ours but the main one", process.threads_of_ours() - 1, "", 0);
    out.most("left: descriptors", process.descriptors() - descriptors, "", 0);
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::max(10, std::atoi(argv[1])) : 2'000;
    const auto program = trinco::detail::test::find_etcd();
    if (!program) {
        std::puts("there is no etcd; `make servers` fetches one");
        return 0;
    }
    figures out;
    const test_etcd server({.program = *program});
    const std::string url = "etcd://" + server.address();
    // All forks come before this process opens a store.
    auto ours = std::make_unique<timed_process>([&] { return make_ours(url); });
    auto commits = std::make_unique<timed_process>([&] { return make_bare(server.port()); });
    const auto granted = server.must({"lease", "grant", "600"});  // "lease HEX granted with ..."
    const auto lease = granted.substr(6, granted.find(' ', 6) - 6);
    auto steps =
        std::make_unique<timed_process>([&] { return make_own_steps(server.port(), lease); });
    many_waiters thousand(url);
    many_waiters ten_thousand(url);
    namespace test = trinco::detail::test;
    if (const auto peer = test::find_test_program(test::go_client_program)) {
        go_client go(*peer, server.address());
        lock_and_unlock(out, *ours, *commits, *steps, &go, rounds);
    } else {
        lock_and_unlock(out, *ours, *commits, *steps, nullptr, rounds);
    }
    ours.reset();
    commits.reset();
    steps.reset();
    server.must({"lease", "revoke", lease});
    bare_etcd bare(server.port());
    {
        etcd_counts counts;
        auto where = trinco::open(url, {trinco::driver(std::make_shared<counted_etcd>(counts))});
        hand_over(out, where, counts, bare);
    }
    waiting(out, server, bare, thousand, queue_length, 1'000);
    waiting(out, server, bare, ten_thousand, many, 0);
    std::puts(out.all_met() ? "all targets are met" : "not all targets are met");
    return 0;
}
