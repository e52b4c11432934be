#include "apps/trinco/demo/etcd_keys.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "net/event_loop.hpp"
#include "store/etcd/etcd_client.hpp"
#include "store/etcd/etcd_url.hpp"
#include "store/etcd/grpc_transport.hpp"
#include "trinco/error.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
namespace etcd = detail::etcd;

constexpr auto patience = 3s;
constexpr std::int64_t keys_at_once = 500;
constexpr int rounds = 20;
constexpr std::int64_t left_behind_after = 3'600;  // seconds

// Shared, because an answer may come when nobody waits any more.
template <class T>
struct waited {
    std::mutex m;
    std::condition_variable came;
    std::optional<std::pair<std::error_code, T>> said;
};

class broom {
public:
    explicit broom(detail::etcd_target to) {
        on_.start();
        static_cast<void>(detail::run_and_wait(on_, patience, [this, to = std::move(to)]() mutable {
            link_ = etcd::make_etcd_client(
                on_, etcd::make_grpc_transport(on_, std::move(to.members), std::move(to.tls)),
                {std::move(to.user), std::move(to.password)});
        }));
    }
    ~broom() {
        static_cast<void>(ask<int>([](etcd::rpc& link, detail::deadline by, auto done) {
            return link.stop(by, std::move(done));
        }));
        static_cast<void>(detail::run_and_wait(on_, patience, [this] {
            asking_.cancel();
            link_.reset();
        }));
        on_.stop(patience);
    }
    broom(const broom&) = delete;
    broom& operator=(const broom&) = delete;

    // Whether nothing is left under it.
    bool sweep(const std::string& prefix) {
        for (int i = 0; i < rounds; ++i) {
            const auto keys = keys_under(prefix);
            if (!keys) return false;
            if (keys->empty()) return true;
            std::set<std::int64_t> leases;
            for (const auto& one : *keys) leases.insert(one.lease);
            leases.erase(0);
            for (const auto lease : leases) {
                static_cast<void>(
                    ask<int>([lease](etcd::rpc& link, detail::deadline by, auto done) {
                        return link.revoke(lease, by, std::move(done));
                    }));
            }
            etcd::txn_request erase;
            erase.success.emplace_back(etcd::erase_request{etcd::all_under(prefix)});
            static_cast<void>(step(erase));
        }
        return false;
    }

    // What is under that name and was left by demonstrations that were killed.
    void sweep_leftovers(const std::string& beginning) {
        const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
        const auto keys = keys_under(beginning + std::string(own_prefix));
        if (!keys) return;
        std::set<std::string> old;
        for (const auto& one : *keys) {
            const auto name = one.key.substr(beginning.size());
            const auto time = time_in_prefix(name);
            if (!time || now - *time < left_behind_after) continue;
            old.insert(beginning + name.substr(0, name.find('/')) + '/');
        }
        for (const auto& prefix : old) sweep(prefix);
    }

private:
    template <class T, class Request>
    std::pair<std::error_code, T> ask(Request request) {
        const auto box = std::make_shared<waited<T>>();
        on_.post([this, box, request = std::move(request)]() mutable {
            asking_ = request(*link_, on_.now() + patience, [box](std::error_code error, T value) {
                const std::lock_guard hold(box->m);
                box->said.emplace(error, std::move(value));
                box->came.notify_all();
            });
        });
        std::unique_lock hold(box->m);
        box->came.wait_for(hold, patience + 1s, [&] { return box->said.has_value(); });
        if (!box->said) return {make_error_code(errc::unknown_outcome), T{}};
        return std::move(*box->said);
    }
    std::pair<std::error_code, etcd::txn_reply> step(const etcd::txn_request& what) {
        return ask<etcd::txn_reply>([what](etcd::rpc& link, detail::deadline by, auto done) {
            return link.txn(what, by, std::move(done));
        });
    }
    std::optional<std::vector<etcd::key_value>> keys_under(const std::string& prefix) {
        etcd::range_request keys;
        keys.keys = etcd::all_under(prefix);
        keys.limit = keys_at_once;
        keys.keys_only = true;
        etcd::txn_request look;
        look.success.emplace_back(std::move(keys));
        auto [error, reply] = step(look);
        if (error || reply.replies.empty()) return std::nullopt;
        return std::move(reply.replies.front().kvs);
    }

    detail::event_loop on_;
    std::unique_ptr<etcd::rpc> link_;  // the loop's thread only, and so is the next
    detail::op asking_;
};

}  // namespace

bool remove_etcd_keys(const shared_store& from) {
    auto target = detail::parse_etcd_url(from.url);
    auto* const to = std::get_if<detail::etcd_target>(&target);
    if (to == nullptr || to->prefix.empty()) return false;
    const std::string prefix = to->prefix;
    broom with(std::move(*to));
    if (!with.sweep(prefix)) return false;
    // Where the prefix of a demonstration begins; before it there may be one of the user's.
    const auto own = prefix.rfind(own_prefix);
    if (own != std::string::npos) with.sweep_leftovers(prefix.substr(0, own));
    return true;
}

}  // namespace trinco::program::demo
