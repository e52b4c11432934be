#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/quoted.hpp"
#include "store/driver.hpp"
#include "store/etcd/etcd_client.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "store/etcd/etcd_url.hpp"
#include "store/etcd/http2_transport.hpp"
#include "trinco/etcd.hpp"

namespace trinco::detail {
namespace {

class etcd_driver final : public store_driver {
public:
    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 2> all{"etcd", "etcds"};
        return all;
    }

    [[nodiscard]] opened_stores open(const store_url& url, event_loop& on, std::string_view,
                                     const breaker_identity&) override {
        auto parsed = parse_etcd_url(url.scheme + ":" + url.rest);
        if (const auto* sentence = std::get_if<std::string>(&parsed)) {
            throw open_error(errc::invalid, "the store's URL is " + detail::quoted(url.shown) +
                                                ", but " + *sentence);
        }
        auto& target = std::get<etcd_target>(parsed);
        auto link = etcd::make_etcd_client(
            on, etcd::make_http2_transport(on, std::move(target.members), std::move(target.tls)),
            {std::move(target.user), std::move(target.password)});
        opened_stores all;
        all.locks =
            std::make_unique<etcd_locks>(on, std::move(link),
                                         etcd_locks_settings{.prefix = std::move(target.prefix),
                                                             .token_epoch = target.token_epoch});
        return all;
    }
};

}  // namespace
}  // namespace trinco::detail

namespace trinco::drivers {

driver etcd() {
    return driver(std::make_shared<detail::etcd_driver>());
}

}  // namespace trinco::drivers
