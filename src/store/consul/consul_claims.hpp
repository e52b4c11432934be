// What one store of locks on Consul knows of its own leases and claims. Unlike at a server with
// queues this account is what a waiting claim is: nobody else knows of it.
//
// A claim's phases:
//
//   asking    its first attempt to take its names is under way
//   unsure    that attempt's outcome is unknown; until it is entered again, or left
//   waiting   something is in the way, or another claim of the same lease is before it
//   granted   it has been taken, by an answer of the server
//   leaving   it is being given back
//
// The loop's thread. Shared by the conversations, which may outlive the store.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/consul/consul_layout.hpp"
#include "store/consul/consul_locks.hpp"
#include "store/consul/consul_rpc.hpp"

namespace trinco::detail::consul {

enum class claim_phase : std::uint8_t { asking, unsure, waiting, granted, leaving };

// An entry that was taken, and its index when it was last known.
struct held_entry {
    std::string key;
    entry_id id;
    std::uint64_t index = 0;
};

struct known_claim {
    std::uint64_t serial = 0;  // no other claim has it, nor has this id when it is entered anew
    std::vector<part> parts;
    std::string info;
    bool bare = false;
    bool only_if_free = false;
    claim_phase phase = claim_phase::asking;
    bool contends = false;     // somebody sees to it that it gets its names
    bool trying = false;       // with a request that is under way
    bool may_arrive = false;   // a request to take its names may still land
    std::error_code trouble;   // of the first attempt, of one that is unsure
    std::string obstacle;      // the name that is in its way, as last seen; empty: none
    std::int64_t since = 0;    // by our wall clock
    std::int64_t held_at = 0;  // as written into its value
    std::vector<held_entry> held;
    std::vector<std::uint64_t> tokens;
    // When the request was sent that took it, until somebody made use of that.
    std::optional<boot_clock::time_point> proven;
    std::string session;  // of a permit: its own, once there is one
    op contending;

    [[nodiscard]] bool counts() const { return parts.front().kind == claim_kind::permit; }
    [[nodiscard]] std::uint32_t permits() const { return counts() ? parts.front().n : 0; }
};

struct late_claim {
    std::vector<part> parts;
    boot_clock::time_point since;  // nothing was asked for it after that
};

struct known_lease {
    std::chrono::seconds granted{0};
    std::string label;
    std::map<claim_id, known_claim> claims;
    // By name, in the order of coming: who holds it, takes it, or waits for it.
    std::map<std::string, std::vector<claim_id>> lines;
    // Claims that are over, of which a request may still land or an entry stand.
    std::map<claim_id, late_claim> late;
    // Keys and indexes that were asked to be erased, without an answer, and when: what is there may
    // go.
    std::map<std::pair<std::string, std::uint64_t>, boot_clock::time_point> may_go;
    std::optional<boot_clock::time_point> renewal;  // when the last one was begun
};

class claims : public std::enable_shared_from_this<claims> {
public:
    claims(loop& on, std::unique_ptr<rpc> link, consul_locks_settings settings);

    [[nodiscard]] loop& on() const noexcept { return on_; }
    // Null once the store is stopped.
    [[nodiscard]] rpc* link() const noexcept { return stopped_ ? nullptr : link_.get(); }
    [[nodiscard]] const consul_locks_settings& settings() const noexcept { return settings_; }
    // Nothing more is asked; what is under way ends unheard.
    void stop() noexcept;
    void close() noexcept;

    // Known from now on.
    known_lease& lease(std::string_view id) { return leases_[std::string(id)]; }
    // Null: not known.
    [[nodiscard]] known_lease* find(std::string_view lease);
    [[nodiscard]] known_claim* find(std::string_view lease, claim_id id);
    // The same claim, and not one that was entered anew.
    [[nodiscard]] known_claim* find(std::string_view lease, claim_id id, std::uint64_t serial);

    // A claim that nothing is known of yet, behind those of its names that are there.
    known_claim& add(const claim& what);
    // It is not there; those who listen are told why.
    void forget(std::string_view lease, claim_id id, std::error_code why);
    void forget(std::string_view lease);
    // One of its entries is gone, and with it the claim; others may have to be given back.
    void lose(std::string_view lease, claim_id id);
    // Another claim of the same lease that it has to wait for: its name. Empty: none.
    [[nodiscard]] std::string in_line_behind(std::string_view lease, claim_id id);
    // Whether another claim of the lease holds the name, or may by a request under way.
    [[nodiscard]] bool others_may_hold(std::string_view lease, claim_id id,
                                       const std::string& name);
    // What became of these erasures. One of unknown outcome may still be carried out, also when its
    // repetition is refused.
    void erased(std::string_view lease, const std::vector<operation>& what, std::error_code error,
                bool applied);
    // What can hardly land any more, or is too much: a request that was not answered is carried out
    // within a minute, or by a machine that was stopped meanwhile. An entry that comes still later
    // stands until its lease ends, or is found when the lease wants its name.
    void forget_what_is_old(known_lease& on);
    // One that is over was seen at the server.
    void still_there(std::string_view lease, claim_id id);
    // Nobody waits for it: what a permit has at the server goes.
    void give_back(const known_claim& c);
    // Those in these lines who may contend by now, do.
    void advance(std::string_view lease, const std::vector<part>& names);

    // Whoever deals with a claim is told of each change of it, and at last of its end (an error).
    using listener_id = std::uint64_t;
    listener_id listen(std::string_view lease, claim_id id,
                       unique_function<void(std::error_code)> changed);
    void unlisten(listener_id id) { listeners_.erase(id); }
    void tell(std::string_view lease, claim_id id, std::error_code over = {});

    // A request that nobody waits for.
    void in_background(const std::function<op(unique_function<void()>)>& begin);

    [[nodiscard]] std::string key_of(const std::string& name) const {
        return lock_key(settings_.prefix, name, settings_.plain_keys);
    }
    [[nodiscard]] std::uint64_t token_at(std::uint64_t index) const noexcept {
        return (static_cast<std::uint64_t>(settings_.token_epoch) << 45U) + index;
    }
    // Milliseconds of the wall clock since 1970.
    [[nodiscard]] std::int64_t wall_ms() const { return settings_.wall_clock().count(); }
    // How often whoever waits or holds looks by itself.
    [[nodiscard]] boot_clock::duration look_every(std::string_view lease) const;

    // Why something was told this lately, beside what the way knows.
    void say(std::error_code of, std::string sentence);
    // Of an operation that is not to be tried again the error, and why is said; else none.
    [[nodiscard]] std::error_code final_word(const refused& one);
    [[nodiscard]] std::string said(const std::error_code& of) const;

private:
    struct listener {
        std::string lease;
        claim_id id;
        std::shared_ptr<unique_function<void(std::error_code)>> changed;
    };
    void tell_if(const std::function<bool(const listener&)>& of, std::error_code over);
    void call(listener_id n, std::error_code over);
    void remove_from_lines(known_lease& on, claim_id id, const std::vector<part>& parts);

    loop& on_;
    std::unique_ptr<rpc> link_;
    bool stopped_ = false;
    consul_locks_settings settings_;
    std::map<std::string, known_lease, std::less<>> leases_;
    std::map<listener_id, listener> listeners_;
    std::uint64_t next_ = 1;
    std::map<std::uint64_t, op> background_;
    std::error_code said_of_;
    std::string said_;
    boot_clock::time_point said_at_;
};

}  // namespace trinco::detail::consul
