// What a breaker shared through Redis costs a caller, beside its targets, on a server of its own.
//
// Strict calls are compared with the same script, asked for by the same kind of connection, in
// turns of a few hundred, so that what else the machine does meets both. Cached calls are compared
// with four round trips, which is what a shared breaker costs that reads, locks, writes and unlocks
// around each call.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/event_loop.hpp"
#include "net/socket_factory.hpp"
#include "store/open.hpp"
#include "store/redis/redis_link.hpp"
#include "store/redis/redis_url.hpp"
#include "store/redis/script_protocol.hpp"
#include "tests/store/redis/test_server.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/redis.hpp"
#include "wire/resp/resp_writer.hpp"

namespace {

using namespace std::chrono_literals;
using namespace trinco::detail;
using clock_type = std::chrono::steady_clock;

constexpr double most_of_strict = 1.15;
constexpr double least_of_cached = 1'000;
constexpr auto store_timeout = 1s;  // of both: a later deadline costs another timer
constexpr int turns = 60;
constexpr int calls_a_turn = 200;

bool all_met = true;

void verdict(const char* what, double figure, bool met, const char* target) {
    all_met = all_met && met;
    std::printf("%-58s %12.3f   target %s  %s\n", what, figure, target, met ? "met" : "MISSED");
}

double microseconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

double median(std::vector<double> of) {
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    return of[of.size() / 2];
}

// A connection as the store has one, on a thread as the store has one; the caller waits.
class bare_connection {
public:
    explicit bare_connection(const std::string& url) : streams_(make_socket_factory(on_)) {
        on_.start();
        const auto target = std::get<redis_target>(parse_redis_url(url));
        run([&] {
            link_ =
                std::make_unique<redis_link>(on_, *streams_, target.nodes[0], redis_link_options{});
        });
        call({"PING"});
    }
    ~bare_connection() {
        run([&] { link_.reset(); });
        on_.stop(2s);
    }
    bare_connection(const bare_connection&) = delete;
    bare_connection& operator=(const bare_connection&) = delete;

    resp_reply call(const std::vector<std::string>& words) { return send(resp_command(words)); }
    resp_reply send(std::string command) {
        std::promise<resp_reply> said;
        auto answer = said.get_future();
        on_.post([&, command = std::move(command)]() mutable {
            waiting_ = link_->request(
                std::move(command), on_.now() + store_timeout,
                [&](std::error_code, resp_reply reply) { said.set_value(std::move(reply)); });
        });
        return answer.get();
    }

private:
    template <class F>
    void run(F f) {
        std::promise<void> done;
        on_.post([&] {
            f();
            done.set_value();
        });
        done.get_future().wait();
    }

    event_loop on_;
    std::unique_ptr<stream_factory> streams_;
    std::unique_ptr<redis_link> link_;
    op waiting_;
};

std::string command_of(const script_call& call) {
    std::vector<std::string> words{"EVALSHA", std::string(name_of(call.script)),
                                   std::to_string(call.keys.size())};
    words.insert(words.end(), call.keys.begin(), call.keys.end());
    words.insert(words.end(), call.arguments.begin(), call.arguments.end());
    return resp_command(words);
}

// What a strict call would send now: with the view that the record has.
std::string look_of(const trinco::store& where, const std::string& breaker) {
    const auto state = store_access::state(where);
    std::promise<view> said;
    op waiting;
    state->on().post([&] {
        waiting = state->breakers()->look(
            {breaker, {}}, state->on().now() + 5s,
            [&](std::error_code, const glance& seen) { said.set_value(seen.fleet); });
    });
    const auto known = said.get_future().get();
    return command_of(call_of("default", look_request{breaker, known}));
}

void strict_calls(const trinco::store& where, trinco::breaker_registry& breakers,
                  bare_connection& bare) {
    trinco::breaker_options options;
    options.consistency = trinco::consistency::strict;
    options.store_timeout = store_timeout;
    breakers.configure("strict", options);
    auto& b = breakers.get("strict");
    for (int n = 0; n < 200; ++n) {
        if (auto p = b.try_acquire()) p.success();
        std::this_thread::sleep_for(2ms);
    }
    bare.call({"SCRIPT", "LOAD", std::string(text_of(redis_script::look))});
    const auto look = look_of(where, "strict");
    std::vector<double> ours;
    std::vector<double> theirs;
    int refused = 0;
    for (int turn = 0; turn < turns; ++turn) {
        for (int n = 0; n < calls_a_turn; ++n) {
            const auto begin = clock_type::now();
            auto p = b.try_acquire();
            ours.push_back(microseconds_since(begin));
            refused += !p;
            p.success();
        }
        for (int n = 0; n < calls_a_turn; ++n) {
            const auto begin = clock_type::now();
            static_cast<void>(bare.send(look));
            theirs.push_back(microseconds_since(begin));
        }
    }
    const double ratio = median(ours) / median(theirs);
    std::printf("a strict call: %.1f us, the same script alone: %.1f us (medians of %zu)\n",
                median(ours), median(theirs), ours.size());
    verdict("a strict call / the same script on the same connection", ratio,
            ratio <= most_of_strict && refused == 0, "<= 1.15");
}

void cached_calls(trinco::breaker_registry& breakers, bare_connection& bare) {
    auto& b = breakers.get("cached");
    constexpr int many = 5'000'000;
    const auto begin = clock_type::now();
    for (int n = 0; n < many; ++n) {
        if (auto p = b.try_acquire()) p.success();
    }
    const double ours = microseconds_since(begin) / many;
    constexpr int few = 2'000;
    const auto again = clock_type::now();
    for (int n = 0; n < few; ++n) {
        bare.call({"GET", "state"});
        bare.call({"SET", "lock", "token", "NX", "PX", "5000"});
        bare.call({"SET", "state", "{\"state\":0,\"counts\":[1,2,3,4,5]}"});
        bare.call({"DEL", "lock"});
    }
    const double theirs = microseconds_since(again) / few;
    std::printf("a cached call: %.4f us, four round trips: %.1f us\n", ours, theirs);
    verdict("calls/s, cached / four round trips each", theirs / ours,
            theirs / ours >= least_of_cached, ">= 1000");
}

}  // namespace

int main() {
    const auto program = test::find_redis_server();
    if (!program) {
        std::puts("there is no redis-server; `make servers` fetches one");
        return 0;
    }
    test::test_server server(*program);
    const std::string url = "redis+unix:" + server.socket();
    const auto where = trinco::open(url, {trinco::drivers::redis()});
    trinco::breaker_registry breakers(where);
    bare_connection bare(url);
    strict_calls(where, breakers, bare);
    cached_calls(breakers, bare);
    return all_met ? 0 : 1;
}
