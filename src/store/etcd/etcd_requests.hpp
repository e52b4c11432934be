// Requests that are answered once: sent when there is a way and a token, repeated when that is
// safe, answered by their deadline. See etcd_rpc.hpp for the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>

#include "core/loop.hpp"
#include "store/etcd/etcd_login.hpp"
#include "store/etcd/etcd_way.hpp"

namespace trinco::detail::etcd {

class etcd_requests final : public way_user {
public:
    static constexpr std::size_t most = 20'000;

    etcd_requests(loop& on, etcd_way& way, etcd_login& login);
    ~etcd_requests() override;

    struct request {
        const char* method = "";
        std::string bytes = {};
        bool changes = true;  // so it is sent again only when it was certainly not carried out
    };
    [[nodiscard]] op start(request what, deadline by, completion<std::string> done);

    void login_changed() { pump_all(); }
    [[nodiscard]] bool waits() const override { return !waiting_.empty(); }
    void way_is_up() override { pump_all(); }
    void way_is_hopeless(errc why) override;
    void drop_all();

private:
    struct one;
    void pump_all();
    void pump(std::uint64_t id);
    void send(std::uint64_t id, one& r);
    void answered(std::uint64_t id, const wire_status& status, std::string reply);
    void repeat(std::uint64_t id, one& r);
    void half_over(std::uint64_t id);
    void too_late(std::uint64_t id);
    void finish(std::uint64_t id, std::error_code error, std::string reply = {});

    loop& loop_;
    etcd_way& way_;
    etcd_login& login_;
    std::unordered_map<std::uint64_t, std::unique_ptr<one>> all_;
    std::set<std::uint64_t> waiting_;  // for a way or a token; the oldest first
    std::uint64_t next_ = 0;
    deadline heard_{};  // the last answer of whatever kind
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail::etcd
