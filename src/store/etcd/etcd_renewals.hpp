// Renewals of leases, on one shared stream of a connection of its own.
//
// etcd answers the messages of a stream in their order and names the lease only, so each answer
// belongs to the oldest message about that lease: one that was asked for later is not taken for
// answered by it, since its caller counts the TTL from a later time.
//
// When a stream is silent for half of a renewal's time, when it ends, or when the way leads
// elsewhere, it is opened anew and all that is unanswered is sent again.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>

#include "core/loop.hpp"
#include "store/etcd/etcd_login.hpp"
#include "store/etcd/etcd_way.hpp"

namespace trinco::detail::etcd {

class etcd_renewals final : public way_user {
public:
    static constexpr std::size_t most = 20'000;

    etcd_renewals(loop& on, etcd_way& way, etcd_login& login);
    ~etcd_renewals() override;

    [[nodiscard]] op start(std::int64_t lease, deadline by, completion<std::chrono::seconds> done);

    void login_changed() { open_if_needed(); }
    [[nodiscard]] bool waits() const override { return !all_.empty() && !stream_; }
    void way_is_up() override;
    void way_is_hopeless(errc why) override;
    void drop_all();

private:
    struct one;
    struct message {
        std::int64_t lease = 0;
        std::uint64_t id = 0;  // of the renewal, which may be gone
    };

    void open_if_needed();
    void send(std::uint64_t id, one& r);
    void heard(const std::string& bytes);
    void ended(const wire_status& status);
    void half_over(std::uint64_t id);
    void close();
    void later();
    void fail_all(errc why);
    void finish(std::uint64_t id, std::error_code error, std::chrono::seconds ttl = {});

    loop& loop_;
    etcd_way& way_;
    etcd_login& login_;
    std::unordered_map<std::uint64_t, std::unique_ptr<one>> all_;
    std::uint64_t next_ = 0;
    std::unique_ptr<wire_stream> stream_;
    std::size_t endpoint_ = 0;
    std::uint64_t generation_ = 0;
    std::string token_;
    deadline opened_{};
    deadline heard_{};
    std::deque<message> unanswered_;  // in the order of sending
    std::uint32_t failures_ = 0;      // of streams, since an answer
    int refusals_ = 0;                // of the token, since an answer
    op again_;
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail::etcd
