// What locks on Consul cost, beside their targets, on a server of its own.
//
//     consul_bench [ROUNDS]      1,000 unless said
//
// What is compared takes turns (timed_process.hpp).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/figures.hpp"
#include "bench/timed_process.hpp"
#include "tests/store/consul/consul_rpc_client.hpp"
#include "tests/store/consul/test_consul.hpp"
#include "tests/store/go_client.hpp"
#include "trinco/consul.hpp"
#include "trinco/mutex.hpp"
#include "trinco/semaphore.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace {

using namespace std::chrono_literals;
using namespace trinco::bench;
using trinco::detail::consul::operation;
using trinco::detail::test::consul_rpc_client;
using trinco::detail::test::go_client;
using trinco::detail::test::test_consul;

using act = std::function<void()>;

act make_lock(const std::string& url) {
    const auto where =
        std::make_shared<trinco::store>(trinco::open(url, {trinco::drivers::consul()}));
    const auto on = std::make_shared<trinco::session>(*where);
    const auto m = std::make_shared<trinco::mutex>(*on, "ours");
    return [where, on, m] {
        m->lock();
        m->unlock();
    };
}

act make_permit(const std::string& url) {
    const auto where =
        std::make_shared<trinco::store>(trinco::open(url, {trinco::drivers::consul()}));
    const auto on = std::make_shared<trinco::session>(*where);
    const auto s = std::make_shared<trinco::semaphore>(*on, "permits", 2);
    return [where, on, s] {
        s->acquire();
        s->release();
    };
}

void must(bool well) {
    if (!well) std::abort();
}

act make_bare(std::uint16_t port) {
    const auto bare = std::make_shared<consul_rpc_client>(std::vector{port});
    return [=] {
        for (int i = 0; i < 2; ++i) must(!bare->set("bare", i == 0 ? "x" : "y").error);
    };
}

// The two transactions of a lock that nobody else wants: in under this session, and out.
act make_own_steps(std::uint16_t port) {
    const auto bare = std::make_shared<consul_rpc_client>(std::vector{port});
    operation absent;
    absent.verb = operation::verb_t::check_not_exists;
    absent.key = "steps/.lock";
    operation take = absent;
    take.verb = operation::verb_t::lock;
    take.value = std::string(60, 'x');
    take.session = bare->create(600s).value;
    operation away = absent;
    away.verb = operation::verb_t::erase_cas;
    return [=]() mutable {
        const auto taken = bare->txn({absent, take}).value;
        must(taken.applied);
        away.index = taken.rows.at(0).modify_index;
        must(bare->txn({away}).value.applied);
    };
}

void compare(figures& out, std::vector<std::function<double()>> sides, go_client* go, int rounds) {
    if (go != nullptr) {
        sides.emplace_back([go] {
            const auto said = go->ask("g", "time theirs");  // "took NANOSECONDS"
            return std::atof(said.c_str() + said.find(' ')) / 1'000;
        });
    }
    const auto took = take_turns(sides, rounds);
    const double ours = median(took[0]), two_commits = median(took[1]);
    figures::beside("lock + unlock, uncontended, median", ours, "us");
    figures::beside("the same, 99 of 100", share(took[0], 0.99), "us");
    figures::beside("two bare commits, median", two_commits, "us");
    out.most("lock + unlock / two bare commits", ours / two_commits, "", 1.1);
    figures::beside("the transactions of a lock, bare, median", median(took[2]), "us");
    figures::beside("lock + unlock / these", ours / median(took[2]), "");
    figures::beside("a permit and its end, median", median(took[3]), "us");
    figures::beside("a permit and its end / two bare commits", median(took[3]) / two_commits, "");
    if (go == nullptr) {
        std::puts("Go's client was not built: `make servers` builds it where Go is");
        return;
    }
    figures::beside("Lock + Unlock of Go's client, median", median(took[4]), "us");
    out.most("lock + unlock / that of Go's client", ours / median(took[4]), "", 1);
}

}  // namespace

int main(int argc, char** argv) {
    namespace test = trinco::detail::test;
    const int rounds = argc > 1 ? std::max(10, std::atoi(argv[1])) : 1'000;
    const auto program = test::find_consul();
    if (!program) {
        std::puts("there is no Consul; `make servers` builds one");
        return 0;
    }
    figures out;
    const test_consul server({.program = *program});
    const std::string url = "consul://" + server.address();
    // All forks come before this process opens a store.
    timed_process ours([&] { return make_lock(url); });
    timed_process commits([&] { return make_bare(server.port()); });
    timed_process steps([&] { return make_own_steps(server.port()); });
    timed_process permits([&] { return make_permit(url); });
    const std::vector<std::function<double()>> sides{
        [&] { return ours.microseconds(); }, [&] { return commits.microseconds(); },
        [&] { return steps.microseconds(); }, [&] { return permits.microseconds(); }};
    if (const auto peer = test::find_consul_go_client()) {
        go_client go(*peer, server.address());
        compare(out, sides, &go, rounds);
    } else {
        compare(out, sides, nullptr, rounds);
    }
    std::puts(out.all_met() ? "all targets are met" : "not all targets are met");
    return 0;
}
