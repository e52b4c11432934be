#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/quoted.hpp"
#include "store/consul/consul_client.hpp"
#include "store/consul/consul_environment.hpp"
#include "store/consul/consul_locks.hpp"
#include "store/consul/consul_url.hpp"
#include "store/driver.hpp"
#include "trinco/consul.hpp"

namespace trinco::detail {
namespace {

class consul_driver final : public store_driver {
public:
    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 2> all{"consul", "consuls"};
        return all;
    }

    [[nodiscard]] opened_stores open(const store_url& url, event_loop& on, std::string_view,
                                     const breaker_identity&) override {
        const auto refuse = [&](const std::string& sentence) {
            throw open_error(errc::invalid, "the store's URL is " + detail::quoted(url.shown) +
                                                ", but " + sentence);
        };
        auto parsed = parse_consul_url(url.scheme + ":" + url.rest);
        if (const auto* sentence = std::get_if<std::string>(&parsed)) refuse(*sentence);
        auto& target = std::get<consul_target>(parsed);
        if (const auto wrong = consul::take_token_of_environment(target.way)) refuse(*wrong);
        opened_stores all;
        all.locks = std::make_unique<consul_locks>(
            on, consul::make_consul_client(on, std::move(target.way)),
            consul_locks_settings{.prefix = std::move(target.prefix),
                                  .plain_keys = target.plain_keys,
                                  .token_epoch = target.token_epoch});
        return all;
    }
};

}  // namespace
}  // namespace trinco::detail

namespace trinco::drivers {

driver consul() {
    return driver(std::make_shared<detail::consul_driver>());
}

}  // namespace trinco::drivers
