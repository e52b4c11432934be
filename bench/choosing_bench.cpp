// What the ways to guard something cost on each store, in milliseconds: the table of
// docs/choosing.md.
//
//     choosing_bench [URL...]       default: memory:, local: in a new folder, an etcd of one node,
//                                   a Consul of one server
//
// One caller without contention; 200 rounds of each, their median and the slowest but two (p99).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "tests/store/consul/test_consul.hpp"
#include "tests/store/etcd/test_etcd.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/consul.hpp"
#include "trinco/etcd.hpp"
#include "trinco/guarded_write.hpp"
#include "trinco/local.hpp"
#include "trinco/memory.hpp"
#include "trinco/mutex.hpp"
#include "trinco/once.hpp"
#include "trinco/store.hpp"

namespace {

constexpr std::size_t rounds = 200;

void measure(const char* what, const std::function<void(std::size_t)>& f) {
    std::vector<double> ms;
    for (std::size_t i = 0; i < rounds; ++i) {
        const auto begun = std::chrono::steady_clock::now();
        f(i);
        const std::chrono::duration<double, std::milli> took =
            std::chrono::steady_clock::now() - begun;
        ms.push_back(took.count());
    }
    std::sort(ms.begin(), ms.end());
    std::printf("  %-44s %8.3f %8.3f\n", what, ms[rounds / 2], ms[rounds - 3]);
}

void measure_all(const std::string& url) {
    const auto where = trinco::open(url, {trinco::drivers::memory(), trinco::drivers::local(),
                                          trinco::drivers::etcd(), trinco::drivers::consul()});
    trinco::session on(where);
    trinco::mutex warm(on, "choosing/warm");
    for (int i = 0; i < 20; ++i) const std::lock_guard hold(warm);
    std::printf("%-46s %8s %8s\n", std::string(where.url()).c_str(), "median", "p99");

    trinco::mutex m(on, "choosing/lock");
    measure("lock and unlock", [&](std::size_t) { const std::lock_guard hold(m); });
    m.lock();
    std::uint64_t revision = trinco::guarded_write(m).put("choosing:1", "0").commit();
    measure("guarded write that compares a revision", [&](std::size_t i) {
        revision = trinco::guarded_write(m).put("choosing:1", std::to_string(i), revision).commit();
    });
    measure("reading what is guarded",
            [&](std::size_t) { static_cast<void>(trinco::read_guarded(on, "choosing:1")); });
    trinco::guarded_write(m).erase("choosing:1").commit();
    m.unlock();
    trinco::once_options how;
    how.keep = std::chrono::seconds(60);
    const auto nothing = [](const trinco::once_run&) { return std::string(); };
    const auto begun = std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
    const auto key = [&](std::size_t i) { return "choosing/" + begun + "/" + std::to_string(i); };
    measure("once, a new key",
            [&](std::size_t i) { static_cast<void>(trinco::once(on, key(i), nothing, how)); });
    measure("once, a key that is done",
            [&](std::size_t i) { static_cast<void>(trinco::once(on, key(i), nothing, how)); });
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc > 1) {
        for (int i = 1; i < argc; ++i) measure_all(argv[i]);
        return 0;
    }
    namespace test = trinco::detail::test;
    measure_all("memory:");
    const test::scratch_folder folder;
    measure_all("local:" + (folder.path() / "choosing.db").string());
    if (const auto program = test::find_etcd()) {
        test::etcd_settings one_node;
        one_node.program = *program;
        const test::test_etcd server(std::move(one_node));
        measure_all("etcd://" + server.address());
    } else {
        std::puts("etcd: left out, there is none; try `make servers`");
    }
    if (const auto program = test::find_consul()) {
        const test::test_consul server({.program = *program});
        measure_all("consul://" + server.address());
    } else {
        std::puts("consul: left out, there is none; try `make servers`");
    }
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
