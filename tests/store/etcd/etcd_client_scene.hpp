// The rpc on virtual time, over members that say what a test lets them say.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scripted_transport.hpp"
#include "sim/world.hpp"
#include "store/etcd/etcd_client.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {

using namespace etcd;
using namespace std::chrono_literals;

// The reply to a transaction that was carried out.
inline const std::string a_txn = proto_bytes().text(1, proto_bytes().number(3, 7)).number(2, 1);

class EtcdClient : public testing::Test {
protected:
    void make(std::size_t members, credentials who = {}) {
        auto by = std::make_unique<scripted_transport>(members);
        by_ = by.get();
        rpc_ = make_etcd_client(at_, std::move(by), std::move(who));
    }
    void run(boot_clock::duration d = 1ms) { world_.run_for(d); }
    // The oldest probe that waits says that all is well.
    void come_up() {
        run();
        const auto probes = by_->waiting(method::status);
        ASSERT_FALSE(probes.empty());
        by_->up.insert(probes[0]->to.endpoint);
        by_->answer(probes[0], {});
        run();
    }
    template <class T>
    struct outcome {
        std::optional<std::error_code> error;
        T value{};
        op interest;
    };
    template <class T>
    static completion<T> into(const std::shared_ptr<outcome<T>>& to) {
        return [to](std::error_code error, T value) {
            EXPECT_FALSE(to->error) << "answered twice";
            to->error = error;
            to->value = std::move(value);
        };
    }
    std::shared_ptr<outcome<txn_reply>> put(boot_clock::duration within = 4s) {
        const auto out = std::make_shared<outcome<txn_reply>>();
        out->interest =
            rpc_->txn({{}, {put_request{"k", "v", 0}}, {}}, at_.now() + within, into(out));
        return out;
    }
    std::shared_ptr<outcome<txn_reply>> get(boot_clock::duration within = 4s) {
        const auto out = std::make_shared<outcome<txn_reply>>();
        out->interest = rpc_->txn({{}, {range_request{}}, {}}, at_.now() + within, into(out));
        return out;
    }
    std::shared_ptr<outcome<std::chrono::seconds>> renew(std::int64_t lease,
                                                         boot_clock::duration within = 4s) {
        const auto out = std::make_shared<outcome<std::chrono::seconds>>();
        out->interest = rpc_->keep_alive(lease, at_.now() + within, into(out));
        return out;
    }
    struct told {
        std::vector<watch_news> news;
        std::error_code over;
        op interest;
    };
    std::shared_ptr<told> watch(watch_request what) {
        const auto out = std::make_shared<told>();
        out->interest = rpc_->watch(
            what, [out](const watch_news& n) { out->news.push_back(n); },
            [out](std::error_code why) { out->over = why; });
        return out;
    }

    sim::world world_{1};
    sim::node& at_{world_.add_node("client")};
    scripted_transport* by_ = nullptr;
    std::unique_ptr<rpc> rpc_;
};

}  // namespace trinco::detail::test
