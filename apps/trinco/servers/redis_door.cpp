#include "apps/trinco/servers/redis_door.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "net/event_loop.hpp"
#include "net/socket_factory.hpp"
#include "net/tls_factory.hpp"
#include "store/redis/redis_route.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 3s;

// Shared, because an answer may come when nobody waits any more.
struct waited {
    std::mutex m;
    std::condition_variable came;
    std::optional<redis_door::answer> said;
};

}  // namespace

struct redis_door::state {
    detail::event_loop on;
    std::unique_ptr<detail::stream_factory> sockets = detail::make_socket_factory(on);
    std::unique_ptr<detail::stream_factory> tls = detail::make_tls_factory(on, *sockets);
    std::unique_ptr<detail::redis_route> route;  // the loop's thread only, and so is the next
    detail::op asking;
};

redis_door::redis_door(detail::redis_target target) : state_(std::make_unique<state>()) {
    state_->on.start();
    static_cast<void>(detail::run_and_wait(
        state_->on, patience, [s = state_.get(), target = std::move(target)]() mutable {
            s->route = detail::make_redis_route(s->on, *s->tls, std::move(target),
                                                [](const detail::route_event&) {});
        }));
}

redis_door::~redis_door() {
    static_cast<void>(detail::run_and_wait(state_->on, patience, [s = state_.get()] {
        s->asking.cancel();
        s->route.reset();
        s->tls.reset();
        s->sockets.reset();
    }));
    state_->on.stop(patience);
}

redis_door::answer redis_door::ask(const std::string& key, const std::vector<std::string>& words) {
    const auto box = std::make_shared<waited>();
    state_->on.post([s = state_.get(), box, key, command = detail::resp_command(words)] {
        s->asking = s->route->request(key, command, s->on.now() + patience,
                                      [box](std::error_code error, detail::resp_reply reply) {
                                          const std::lock_guard hold(box->m);
                                          box->said = answer{error, std::move(reply)};
                                          box->came.notify_all();
                                      });
    });
    std::unique_lock hold(box->m);
    box->came.wait_for(hold, patience + 1s, [&] { return box->said.has_value(); });
    if (!box->said) return {make_error_code(errc::unknown_outcome), {}};
    return std::move(*box->said);
}

}  // namespace trinco::program
