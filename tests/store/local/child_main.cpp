// A process for the tests of local stores across processes:
//
//     local_child FILE count NAME      exchanges for ever, one success each; says how many were
//                                      answered, a line each
//     local_child FILE listen          says `ready`, then the era of each notice it hears
//     local_child FILE hold NAME       takes the lock, says its token and keeps it
//     local_child FILE share NAME      the same with a shared one
//     local_child FILE heir NAME       the same, and forks a child that inherits the session; says
//                                      its pid after the token
//     local_child FILE race NAME LOG N takes the lock N times, each time appends its token to LOG
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "store/local/local_breakers.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/store/local/lock_client.hpp"

namespace trinco::detail::test {
namespace {

constexpr auto ages = std::chrono::hours(1);

void say(const std::string& what) {
    std::puts(what.c_str());
    std::fflush(stdout);
}

int count(driven_loop& on, breaker_store& store) {
    news n;
    n.breaker = "payments";
    n.options = to_text(suite_policy());
    n.slices.push_back({{1, 0, 0, 0, 0, 0}, milliseconds(0)});
    while (true) {
        ++n.seq;
        bool answered = false;
        while (!answered) {
            bool over = false;
            const op waiting =
                store.exchange({&n, 1}, on.now() + std::chrono::seconds(10),
                               [&](std::error_code error, const std::vector<verdict>& v) {
                                   over = true;
                                   answered = !error && !v.at(0).error;
                                   if (answered) n.mine = v[0].fleet;
                               });
            on.run_until([&] { return over; }, ages);
        }
        say(std::to_string(n.seq));
    }
}

int listen(driven_loop& on, breaker_store& store) {
    const op subscription = store.subscribe(
        [](const notice& n) { say(n.breaker + " " + std::to_string(n.fleet.era)); });
    bool there = false;
    const op asked = store.inspect("", "", 1, on.now() + std::chrono::seconds(10),
                                   [&](std::error_code, const page&) { there = true; });
    on.run_until([&] { return there; }, ages);
    say("ready");
    on.run_for(ages);
    return 0;
}

int hold(const std::vector<std::string>& words) {
    lock_client client(local_settings_for(words.at(1)));
    const auto on = client.open();
    const auto kind = words.at(2) == "share" ? claim_kind::shared : claim_kind::exclusive;
    static_cast<void>(client.enter(on, 1, words.at(3), kind));
    const auto token = client.await(on, 1, std::chrono::minutes(1));
    say(std::to_string(token.value_or(0)));
    if (words[2] == "heir") {
        const auto heir = ::fork();
        if (heir == 0) {
            ::alarm(60);
            ::pause();
            ::_exit(0);
        }
        say(std::to_string(heir));
    }
    client.on().run_for(ages);
    return 0;
}

int race(const std::vector<std::string>& words) {
    lock_client client(local_settings_for(words.at(1)));
    const auto on = client.open();
    const auto rounds = std::stoull(words.at(5));
    for (std::uint64_t id = 1; id <= rounds; ++id) {
        if (client.enter(on, id, words.at(3))) return 1;
        const auto token = client.await(on, id, std::chrono::minutes(1));
        if (!token) return 2;
        std::ofstream(words.at(4), std::ios::app) << std::to_string(*token) + "\n";
        client.leave(on, id);
        say(std::to_string(*token));
    }
    return 0;
}

int run(const std::vector<std::string>& words) {
    if (words.at(2) == "hold" || words[2] == "share" || words[2] == "heir") return hold(words);
    if (words[2] == "race") return race(words);
    driven_loop on;
    auto worker = std::make_shared<local_worker>(local_settings_for(words.at(1)), words.at(1));
    const std::string name = words.size() > 3 ? words[3] : "listener";
    local_breakers store(on, std::move(worker), "default", {name, name});
    return words.at(2) == "count" ? count(on, store) : listen(on, store);
}

}  // namespace
}  // namespace trinco::detail::test

int main(int argc, char** argv) {
    return trinco::detail::test::run({argv, argv + argc});
}
