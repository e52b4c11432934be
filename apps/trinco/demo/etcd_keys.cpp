#include "apps/trinco/demo/etcd_keys.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/servers/etcd_talk.hpp"
#include "store/etcd/etcd_url.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
namespace etcd = detail::etcd;

constexpr auto patience = 3s;
constexpr std::int64_t keys_at_once = 500;
constexpr int rounds = 20;
constexpr std::int64_t left_behind_after = 3'600;  // seconds

class broom {
public:
    explicit broom(detail::etcd_target to) : with_(std::move(to)) {}

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
                    with_.ask<int>(patience, [lease](etcd::rpc& link, auto by, auto done) {
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
    etcd_told<etcd::txn_reply> step(const etcd::txn_request& what) {
        return with_.ask<etcd::txn_reply>(patience, [what](etcd::rpc& link, auto by, auto done) {
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
        auto seen = step(look);
        if (seen.error || seen.value.replies.empty()) return std::nullopt;
        return std::move(seen.value.replies.front().kvs);
    }

    etcd_talk with_;
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
