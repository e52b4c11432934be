// Many watches on one stream of a connection of its own, which is opened anew when it ends or the
// way leads elsewhere: each watch then goes on behind the last revision that it told.
//
// etcd may split what happened at one revision over several messages; it is told when all is there.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/loop.hpp"
#include "store/etcd/etcd_login.hpp"
#include "store/etcd/etcd_rpc.hpp"
#include "store/etcd/etcd_way.hpp"
#include "store/etcd/etcd_wire.hpp"

namespace trinco::detail::etcd {

class etcd_watches final : public way_user {
public:
    static constexpr std::size_t most = 20'000;

    etcd_watches(loop& on, etcd_way& way, etcd_login& login);
    ~etcd_watches() override;

    [[nodiscard]] op start(watch_request what, rpc::on_news news, rpc::on_over over);

    void login_changed() { open_if_needed(); }
    [[nodiscard]] bool waits() const override { return !all_.empty() && !stream_; }
    void way_is_up() override;
    void way_is_hopeless(errc why) override;
    void drop_all();

private:
    struct one;
    void open_if_needed();
    void create(std::int64_t id, one& w);
    void heard(const std::string& bytes);
    void created(const watch_message& m);
    void refused(std::int64_t id, const watch_message& m);
    void tell(std::int64_t id, watch_message m);
    void ended(const wire_status& status);
    void close();
    void later();
    void drop(std::int64_t id);
    void finish(std::int64_t id, errc why);
    void fail_all(errc why);

    loop& loop_;
    etcd_way& way_;
    etcd_login& login_;
    std::unordered_map<std::int64_t, std::shared_ptr<one>> all_;
    std::int64_t next_ = 1;
    std::unique_ptr<wire_stream> stream_;
    std::size_t endpoint_ = 0;
    std::uint64_t generation_ = 0;
    std::string token_;
    // Asked for on this stream and not yet answered, in order; a refusal names no watch.
    std::deque<std::int64_t> asked_;
    std::uint32_t failures_ = 0;  // of streams, since one was of use
    op again_;
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail::etcd
