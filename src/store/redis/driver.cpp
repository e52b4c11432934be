#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/quoted.hpp"
#include "net/socket_factory.hpp"
#include "net/tls_factory.hpp"
#include "store/driver.hpp"
#include "store/redis/redis_breakers.hpp"
#include "store/redis/redis_url.hpp"
#include "trinco/redis.hpp"

namespace trinco::detail {
namespace {

// The sockets of one store, and the way that is made of them.
struct redis_sockets {
    redis_sockets(event_loop& l, redis_target t)
        : on(l),
          plain(make_socket_factory(l)),
          tls(make_tls_factory(l, *plain)),
          target(std::move(t)) {}

    std::unique_ptr<redis_route> operator()(redis_route::on_event changed) {
        return make_redis_route(on, *tls, target, std::move(changed));
    }

    event_loop& on;
    std::unique_ptr<stream_factory> plain;
    std::unique_ptr<stream_factory> tls;
    redis_target target;
};

class redis_driver final : public store_driver {
public:
    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 5> all{"redis", "rediss", "redis+unix",
                                                             "redis+sentinel", "redis+cluster"};
        return all;
    }

    [[nodiscard]] opened_stores open(const store_url& url, event_loop& on,
                                     std::string_view name_space,
                                     const breaker_identity& who) override {
        auto parsed = parse_redis_url(url.scheme + ":" + url.rest);
        if (const auto* sentence = std::get_if<std::string>(&parsed)) {
            throw open_error(errc::invalid, "the store's URL is " + detail::quoted(url.shown) +
                                                ", but " + *sentence);
        }
        auto& target = std::get<redis_target>(parsed);
        const unsigned database = target.database;
        opened_stores all;
        all.breakers = std::make_unique<redis_breakers>(on, redis_sockets(on, std::move(target)),
                                                        std::string(name_space), who, database);
        return all;
    }
};

}  // namespace
}  // namespace trinco::detail

namespace trinco::drivers {

driver redis() {
    return driver(std::make_shared<detail::redis_driver>());
}

}  // namespace trinco::drivers
