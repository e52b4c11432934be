// A service that shares a breaker with `trinco call`: the library's registry over the store whose
// URL is the first argument, the breaker named by the second. Reads a word a line, and answers each
// with a line:
//
//     success | failure | ignored   one call with that outcome: admitted, probe, or refused and by
//                                   whom
//     many                          100 calls that succeed: how many were admitted
//     state                         the state, and the override
#include <iostream>
#include <string>
#include <vector>

#include "trinco/breaker_events.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/local.hpp"
#include "trinco/store.hpp"
#if TRINCO_REDIS
#include "trinco/redis.hpp"
#endif

namespace {

using namespace std::chrono_literals;

trinco::breaker_options options() {
    trinco::breaker_options o;
    o.window = 1min;
    o.minimum_calls = 5;
    o.open_for = 200ms;
    o.jitter = 0;
    o.half_open_probes = 3;
    o.sync_interval = 10ms;
    o.store_timeout = 2s;  // a busy machine must not make it decide alone
    o.degraded_after = 10s;
    return o;
}

std::string call(trinco::circuit_breaker& breaker, trinco::outcome how) {
    trinco::permit p = breaker.try_acquire();
    if (!p) return "refused " + std::string(text_of(p.refusal().by));
    const bool is_probe = p.is_probe();
    p.settle(how);
    return is_probe ? "probe" : "admitted";
}

std::string answer(trinco::circuit_breaker& breaker, const std::string& word) {
    if (word == "success") return call(breaker, trinco::outcome::success);
    if (word == "failure") return call(breaker, trinco::outcome::failure);
    if (word == "ignored") return call(breaker, trinco::outcome::ignored);
    if (word == "state") {
        const auto now = breaker.snapshot();
        return std::string(text_of(now.state)) + " " + std::string(text_of(now.over));
    }
    int admitted = 0;
    for (int i = 0; i < 100; ++i) {
        if (call(breaker, trinco::outcome::success) == "admitted") ++admitted;
    }
    return std::to_string(admitted);
}

}  // namespace

int main(int, char** words) {
    const std::vector<trinco::driver> drivers = {
        trinco::drivers::local(),
#if TRINCO_REDIS
        trinco::drivers::redis(),
#endif
    };
    const auto at = trinco::open(words[1], drivers);
    trinco::breaker_registry breakers(at, {.defaults = options()});
    trinco::circuit_breaker& breaker = breakers.get(words[2]);
    for (std::string word; std::getline(std::cin, word);) {
        std::cout << answer(breaker, word) << std::endl;
    }
}
