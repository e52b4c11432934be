#include "apps/trinco/demo/shared_store.hpp"

#include <sys/random.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/demo/gateway_caller.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/store_password.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"
#if TRINCO_REDIS
#include "net/event_loop.hpp"
#include "net/socket_factory.hpp"
#include "net/tls_factory.hpp"
#include "store/redis/redis_route.hpp"
#include "store/redis/redis_url.hpp"
#include "store/redis/script_protocol.hpp"
#include "wire/resp/resp_writer.hpp"
#endif

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 3s;

std::string own_namespace() {
    std::uint32_t n = 0;
    if (::getentropy(&n, sizeof n) != 0) {
        n = static_cast<std::uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "trinco-demo-%08x", n);
    return text.data();
}

// Whether the server is there, and lets us in and read.
std::optional<problem> try_out(const settings& with) {
    const auto opened = open_store(with, needs::breakers);
    if (const auto* const why = std::get_if<problem>(&opened)) return *why;
    const store& at = std::get<store>(opened);
    const auto read = ask_breakers<detail::page>(at, patience, [](auto& on, auto by, auto done) {
        return on.inspect("", "", 1, by, std::move(done));
    });
    if (!read.error) return std::nullopt;
    return store_problem(at, "play the demonstration", read.error);
}

#if TRINCO_REDIS
// One after the other, because a cluster keeps them on different nodes.
class remover {
public:
    explicit remover(detail::redis_target target)
        : sockets_(detail::make_socket_factory(on_)),
          tls_(detail::make_tls_factory(on_, *sockets_)) {
        on_.start();
        static_cast<void>(
            detail::run_and_wait(on_, patience, [this, target = std::move(target)]() mutable {
                route_ = detail::make_redis_route(on_, *tls_, std::move(target),
                                                  [](const detail::route_event&) {});
            }));
    }
    ~remover() {
        static_cast<void>(detail::run_and_wait(on_, patience, [this] {
            asking_.cancel();
            route_.reset();
            tls_.reset();
            sockets_.reset();
        }));
        on_.stop(patience);
    }
    remover(const remover&) = delete;
    remover& operator=(const remover&) = delete;

    [[nodiscard]] bool remove(std::vector<std::string> keys) {
        struct waited {
            std::mutex m;
            std::condition_variable came;
            std::optional<bool> gone;
        };
        const auto answer = std::make_shared<waited>();
        on_.post([this, answer, keys = std::move(keys)] {
            std::vector<std::string> words = {"UNLINK"};
            words.insert(words.end(), keys.begin(), keys.end());
            asking_ = route_->request(
                keys.front(), detail::resp_command(words), on_.now() + patience,
                [answer](std::error_code error, const detail::resp_reply& reply) {
                    const std::lock_guard hold(answer->m);
                    answer->gone = !error && !reply.is(detail::resp_reply::kind_t::error);
                    answer->came.notify_all();
                });
        });
        std::unique_lock hold(answer->m);
        answer->came.wait_for(hold, patience + 1s, [&] { return answer->gone.has_value(); });
        return answer->gone.value_or(false);
    }

private:
    detail::event_loop on_;
    std::unique_ptr<detail::stream_factory> sockets_;
    std::unique_ptr<detail::stream_factory> tls_;
    std::unique_ptr<detail::redis_route> route_;
    detail::op asking_;
};

bool remove_keys(const shared_store& from) {
    const auto target = detail::parse_redis_url(from.url);
    if (!std::holds_alternative<detail::redis_target>(target)) return false;
    remover with(std::get<detail::redis_target>(target));
    return with.remove(detail::breaker_keys(from.name_space, guarded_dependency)) &&
           with.remove({detail::breaker_index_key(from.name_space)});
}
#else
bool remove_keys(const shared_store&) {
    return false;
}
#endif

}  // namespace

std::variant<shared_store, problem> find_shared_store(const store_flags& flags) {
    auto loaded = load_settings(flags);
    if (auto* const why = std::get_if<problem>(&loaded)) return std::move(*why);
    auto& with = std::get<settings>(loaded);
    if (!is_redis(with.breakers_url)) {
        return problem{exit_usage,
                       "the demonstration brings its own store of this machine, and --breakers is "
                       "for a server, as in redis://127.0.0.1:6379; it is " +
                           detail::quoted(detail::shown_url(with.breakers_url), 100)};
    }
    with.name_space = own_namespace();
    auto url = with_password(with);
    if (auto* const why = std::get_if<problem>(&url)) return std::move(*why);
    if (auto why = try_out(with)) return std::move(*why);
    return shared_store{std::move(std::get<std::string>(url)), detail::shown_url(with.breakers_url),
                        with.name_space};
}

std::optional<std::string> clear(const shared_store& from) {
    if (remove_keys(from)) return std::nullopt;
    return "its keys trinco:1:" + from.name_space + ":* are gone by themselves within " +
           duration_words(caller_breaker().key_ttl);
}

}  // namespace trinco::program::demo
