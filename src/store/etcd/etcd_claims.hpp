// What one store of locks on etcd knows of its own leases and claims, and what its conversations
// share. Nothing of it is needed to be right: a claim that is not known here is read from what
// hangs on its lease. It saves round trips, and keeps a grant's tokens as they were given.
//
// The loop's thread. Shared by the conversations, which may outlive the store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/etcd/etcd_glances.hpp"
#include "store/etcd/etcd_hopes.hpp"
#include "store/etcd/etcd_layout.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "store/etcd/etcd_rpc.hpp"
#include "store/etcd/etcd_slots.hpp"

namespace trinco::detail::etcd {

struct known_claim {
    std::vector<part> parts;            // with the store's prefix
    std::int64_t created = 0;           // create_revision of its entries; 0: not known
    std::int64_t unmarked = 0;          // revision at which nobody had asked the holder to stop
    std::vector<std::uint64_t> tokens;  // of the grant; empty: not known to be granted
    std::int64_t held = 0;              // since when, by our wall clock; 0: not known
    bool at_once = false;               // had its turn when it entered
    bool bare = false;                  // its entries' values are its information alone
};

struct known_lease {
    std::chrono::seconds granted{0};
    std::string label;
    std::map<claim_id, known_claim> claims;
};

class claims {
public:
    claims(loop& on, std::unique_ptr<rpc> link, etcd_locks_settings settings);

    [[nodiscard]] loop& on() const noexcept { return on_; }
    // Null once the store is stopped.
    [[nodiscard]] rpc* link() const noexcept { return stopped_ ? nullptr : link_.get(); }
    [[nodiscard]] const etcd_locks_settings& settings() const noexcept { return settings_; }
    // Nothing more is asked; what is under way ends unheard.
    void stop() noexcept;
    void close() noexcept;

    // Known from now on.
    known_lease& lease(std::string_view id);
    // Null: not known.
    [[nodiscard]] known_lease* find(std::string_view lease);
    [[nodiscard]] known_claim* find(std::string_view lease, claim_id id);
    [[nodiscard]] std::size_t leases() const noexcept { return leases_.size(); }
    [[nodiscard]] std::chrono::seconds granted(std::string_view lease) const;
    [[nodiscard]] std::string label(std::string_view lease) const;
    // It is not there. Of one that may still arrive it stays known where its entries would be, so
    // that they are looked for (etcd_owned.cpp).
    void forget(std::string_view lease, claim_id id);
    void forget(std::string_view lease);

    // Who waits for a claim is told when this store removes it.
    using listener_id = std::uint64_t;
    listener_id listen(std::string_view lease, claim_id id, unique_function<void()> removed);
    void unlisten(listener_id id) { listeners_.erase(id); }

    // A request that nobody waits for.
    void in_background(const std::function<op(unique_function<void()>)>& begin);

    [[nodiscard]] std::uint64_t token_at(std::int64_t revision) const noexcept {
        return (static_cast<std::uint64_t>(settings_.token_epoch) << 45U) +
               static_cast<std::uint64_t>(revision);
    }
    // Milliseconds of the wall clock since 1970.
    [[nodiscard]] std::int64_t wall_ms() const { return settings_.wall_clock().count(); }
    // How often whoever waits or holds looks by itself.
    [[nodiscard]] boot_clock::duration look_every(std::string_view lease) const;

    // What the callers of this store call a claim, and its number in keys.
    etcd_slots slots;
    // Of those who wait and hold.
    etcd_glances glances;
    // Of those who enter.
    etcd_hopes hopes;

    // A lease for records with this `keep`, shared while it is young.
    struct record_lease {
        std::int64_t id = 0;
        boot_clock::time_point until;  // it is given to new records
    };
    using record_lease_map = std::map<std::chrono::seconds, record_lease>;
    [[nodiscard]] const record_lease_map& record_leases() const noexcept { return record_leases_; }
    // Forgets those that are given to nobody any more.
    void keep_record_lease(std::chrono::seconds keep, record_lease one);
    void drop_record_lease(std::chrono::seconds keep) { record_leases_.erase(keep); }

private:
    struct listener {
        std::string lease;
        claim_id id;
        unique_function<void()> removed;
    };
    void tell(std::string_view lease, std::optional<claim_id> id);

    loop& on_;
    std::unique_ptr<rpc> link_;
    bool stopped_ = false;
    etcd_locks_settings settings_;
    std::map<std::string, known_lease, std::less<>> leases_;
    std::map<listener_id, listener> listeners_;
    listener_id next_ = 1;
    std::map<std::uint64_t, op> background_;
    record_lease_map record_leases_;
    std::shared_ptr<claims*> self_;
};

}  // namespace trinco::detail::etcd
