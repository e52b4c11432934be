#include "apps/trinco/demo/gateway_caller.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <list>
#include <memory>
#include <random>
#include <sstream>
#include <system_error>
#include <utility>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/demo/gateway_commands.hpp"
#include "apps/trinco/demo/gateway_server.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "net/event_loop.hpp"
#include "net/http_client.hpp"
#include "net/socket_factory.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/circuit_breaker.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steady = std::chrono::steady_clock;

constexpr std::array<std::string_view, 4> fates = {"ok", "failed", "timeout", "refused"};

void tell(const std::string& line) {
    if (write_all(STDOUT_FILENO, line + "\n") != 0) std::_Exit(exit_output);
}

void tell_call(const made_call& one) {
    tell("call " + std::to_string(one.at.count()) + " " + std::to_string(one.took.count()) + " " +
         std::string(fates[static_cast<std::size_t>(one.fate)]) + (one.probe ? " probe" : ""));
}

// Sends calls on the loop's thread, and settles their permits there.
class gateway_line {
public:
    gateway_line(detail::event_loop& on, std::uint16_t port)
        : on_(on),
          sockets_(detail::make_socket_factory(on)),
          client_(on, *sockets_, detail::stream_address::tcp("127.0.0.1", port), {.kept = 64}) {}

    void send(permit p, steady::time_point since, made_call one) {
        detail::http_request request{.method = "POST", .target = "/charges", .body = "12 EUR"};
        if (one.probe) request.fields.push_back({std::string(probe_field), "1"});
        const auto here = calls_.insert(calls_.end(), under_way{std::move(p), {}});
        here->sending =
            client_.call(std::move(request), on_.now() + call_limit,
                         [this, here, since, one](detail::http_answer got) mutable {
                             one.took = steady::now() - since;
                             one.fate = fate_of(got);
                             // Without a breaker it is empty, and this does nothing.
                             here->admitted.settle(one.fate == call_fate::ok ? outcome::success
                                                                             : outcome::failure);
                             tell_call(one);
                             calls_.erase(here);
                         });
    }

private:
    struct under_way {
        permit admitted;
        detail::op sending;
    };

    static call_fate fate_of(const detail::http_answer& got) {
        if (got.error == std::errc::timed_out) return call_fate::timeout;
        return !got.error && got.response.status < 500 ? call_fate::ok : call_fate::failed;
    }

    detail::event_loop& on_;
    std::unique_ptr<detail::stream_factory> sockets_;
    detail::http_client client_;
    std::list<under_way> calls_;
};

class caller_command final : public command {
public:
    void declare(arguments& to) override {
        to.text("--name", name_, "NAME", "who calls");
        to.number("--port", port_, {1, 65'535}, "the gateway's");
        to.number("--seed", seed_, {0, UINT32_MAX}, "of the pauses between calls");
    }

    int run(std::span<const std::string>) override {
        try {
            return guard_and_call();
        } catch (const std::system_error& error) {
            return complain({exit_unavailable, error.what()});
        }
    }

private:
    int guard_and_call() {
        trinco::store shared;
        std::unique_ptr<breaker_registry> breakers;
        subscription watch;
        circuit_breaker* breaker = nullptr;
        if (const char* const url = std::getenv("TRINCO_BREAKERS")) {
            store_settings who;
            who.voter = name_;
            if (const char* const whose = std::getenv("TRINCO_NAMESPACE")) who.name_space = whose;
            shared = open(url, all_drivers(), who);
            breakers = std::make_unique<breaker_registry>(shared);
            breakers->configure(guarded_dependency, caller_breaker());
            breaker = &breakers->get(guarded_dependency);
            watch = breaker->on_event([](const event& e) {
                if (e.kind != event_kind::state_changed) return;
                tell("state " + std::to_string(moment_now().count()) + " " +
                     std::string(text_of(e.to)));
            });
        }
        detail::event_loop loop;
        auto line = std::make_unique<gateway_line>(loop, static_cast<std::uint16_t>(port_));
        loop.start();
        tell("ready");
        if (hears_within(1h)) call_until_the_end(loop, *line, breaker);
        // What is under way is dropped, and its permits with it.
        return detail::run_and_wait(loop, 2s, [&line] { line.reset(); }) ? exit_unavailable
                                                                         : exit_ok;
    }

    void call_until_the_end(detail::event_loop& loop, gateway_line& line,
                            circuit_breaker* breaker) {
        std::mt19937 random(seed_);
        std::uniform_real_distribution<double> part(0.5, 1.5);
        auto next = steady::now();
        while (true) {
            next += std::chrono::duration_cast<nanoseconds>(
                std::chrono::duration<double>(part(random) / calls_per_second));
            while (steady::now() < next) {
                const auto left =
                    std::chrono::ceil<std::chrono::microseconds>(next - steady::now());
                if (!hears_within(left) && at_end_) return;
            }
            call(loop, line, breaker);
        }
    }

    static void call(detail::event_loop& loop, gateway_line& line, circuit_breaker* breaker) {
        made_call one;
        one.at = moment_now();
        const auto since = steady::now();
        permit p;
        if (breaker != nullptr) {
            p = breaker->try_acquire();
            if (!p) {
                one.took = steady::now() - since;
                one.fate = call_fate::refused;
                return tell_call(one);
            }
            one.probe = p.is_probe();
        }
        loop.post([&line, p = std::move(p), since, one]() mutable {
            line.send(std::move(p), since, one);
        });
    }

    // Whether a line came; at_end_ when no more will.
    bool hears_within(std::chrono::microseconds limit) {
        ::pollfd readable{STDIN_FILENO, POLLIN, 0};
        const auto whole = std::chrono::floor<std::chrono::seconds>(limit);
        const ::timespec span{whole.count(), nanoseconds(limit - whole).count()};
        if (::ppoll(&readable, 1, &span, nullptr) <= 0) return false;
        std::array<char, 64> words{};
        at_end_ = ::read(STDIN_FILENO, words.data(), words.size()) <= 0;
        return !at_end_;
    }

    std::string name_;
    std::uint32_t port_ = 0;
    std::uint32_t seed_ = 1;
    bool at_end_ = false;
};

}  // namespace

breaker_options caller_breaker() {
    breaker_options options;
    options.window = 2s;
    options.minimum_calls = 5;
    options.overdue_after = 300ms;
    options.slow_call_rate = 0.3;
    options.call_timeout = call_limit;
    options.open_for = 2s;
    options.open_backoff = 1.0;
    options.half_open_probes = 2;
    options.probe_timeout = call_limit;
    options.quorum = 2;
    // Of what is left behind when nobody can clear up.
    options.live_for = 1min;
    options.key_ttl = 1min;
    return options;
}

role caller_role(const caller_settings& of) {
    role as;
    as.words = {
        "demo-caller",          "--name", of.name, "--port", std::to_string(of.port), "--seed",
        std::to_string(of.seed)};
    if (!of.store.empty()) {
        as.environment = {{"TRINCO_BREAKERS", of.store}, {"TRINCO_NAMESPACE", of.name_space}};
    }
    as.errors = of.errors;
    return as;
}

std::optional<made_call> call_in(const std::string& line) {
    std::istringstream words(line);
    std::string kind;
    std::int64_t at = 0;
    std::int64_t took = 0;
    std::string fate;
    std::string probe;
    if (!(words >> kind >> at >> took >> fate) || kind != "call") return std::nullopt;
    words >> probe;
    const auto found = std::find(fates.begin(), fates.end(), fate);
    if (found == fates.end()) return std::nullopt;
    return made_call{std::chrono::microseconds(at), nanoseconds(took),
                     static_cast<call_fate>(found - fates.begin()), probe == "probe"};
}

std::optional<state_change> state_in(const std::string& line) {
    std::istringstream words(line);
    std::string kind;
    std::int64_t at = 0;
    std::string state;
    if (!(words >> kind >> at >> state) || kind != "state") return std::nullopt;
    for (const auto one : {breaker_state::closed, breaker_state::open, breaker_state::half_open}) {
        if (text_of(one) == state) return state_change{std::chrono::microseconds(at), one};
    }
    return std::nullopt;
}

std::unique_ptr<command> make_demo_caller() {
    return std::make_unique<caller_command>();
}

}  // namespace trinco::program::demo
