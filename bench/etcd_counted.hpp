// The driver of etcd, with a count of what is asked of it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "store/driver.hpp"
#include "store/etcd/etcd_client.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "store/etcd/etcd_url.hpp"
#include "store/etcd/http2_transport.hpp"

namespace trinco::bench {

struct etcd_counts {
    std::atomic<int> commits = 0;
    std::atomic<int> reads = 0;
    std::atomic<int> events = 0;  // told by watches
};

class counted_rpc final : public detail::etcd::rpc {
public:
    counted_rpc(std::unique_ptr<rpc> by, etcd_counts& counts)
        : by_(std::move(by)), counts_(counts) {}

    [[nodiscard]] detail::op txn(const detail::etcd::txn_request& what, detail::deadline until,
                                 detail::completion<detail::etcd::txn_reply> done) override {
        ++(what.reads_only() ? counts_.reads : counts_.commits);
        return by_->txn(what, until, std::move(done));
    }
    [[nodiscard]] detail::op watch(const detail::etcd::watch_request& what, on_news news,
                                   on_over over) override {
        return by_->watch(
            what,
            [this, news = std::move(news)](const detail::etcd::watch_news& told) mutable {
                counts_.events += static_cast<int>(told.events.size());
                news(told);
            },
            std::move(over));
    }
    [[nodiscard]] detail::op grant(std::chrono::seconds ttl, detail::deadline until,
                                   detail::completion<detail::etcd::lease_reply> done) override {
        return by_->grant(ttl, until, std::move(done));
    }
    [[nodiscard]] detail::op revoke(std::int64_t lease, detail::deadline until,
                                    detail::completion<int> done) override {
        return by_->revoke(lease, until, std::move(done));
    }
    [[nodiscard]] detail::op keep_alive(std::int64_t lease, detail::deadline until,
                                        detail::completion<std::chrono::seconds> done) override {
        return by_->keep_alive(lease, until, std::move(done));
    }
    [[nodiscard]] detail::op facts(std::int64_t lease, bool with_keys, detail::deadline until,
                                   detail::completion<detail::etcd::lease_facts> done) override {
        return by_->facts(lease, with_keys, until, std::move(done));
    }
    [[nodiscard]] detail::op status(
        detail::deadline until,
        detail::completion<std::vector<detail::etcd::server_status>> done) override {
        return by_->status(until, std::move(done));
    }
    [[nodiscard]] detail::op members(
        detail::deadline until,
        detail::completion<std::vector<detail::etcd::member>> done) override {
        return by_->members(until, std::move(done));
    }
    [[nodiscard]] std::string trouble() const override { return by_->trouble(); }
    [[nodiscard]] std::string why(const std::error_code& told) const override {
        return by_->why(told);
    }
    [[nodiscard]] detail::op stop(detail::deadline until, detail::completion<int> done) override {
        return by_->stop(until, std::move(done));
    }

private:
    const std::unique_ptr<rpc> by_;
    etcd_counts& counts_;
};

// The counts must outlive the store.
class counted_etcd final : public detail::store_driver {
public:
    explicit counted_etcd(etcd_counts& counts) : counts_(counts) {}
    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> all{"etcd"};
        return all;
    }
    [[nodiscard]] detail::opened_stores open(const detail::store_url& url, detail::event_loop& on,
                                             std::string_view,
                                             const detail::breaker_identity&) override {
        auto parsed = detail::parse_etcd_url(url.scheme + ":" + url.rest);
        auto& target = std::get<detail::etcd_target>(parsed);
        auto link = detail::etcd::make_etcd_client(
            on, detail::etcd::make_http2_transport(on, std::move(target.members), {}), {});
        detail::opened_stores all;
        all.locks = std::make_unique<detail::etcd_locks>(
            on, std::make_unique<counted_rpc>(std::move(link), counts_));
        return all;
    }

private:
    etcd_counts& counts_;
};

}  // namespace trinco::bench
