// A session of locks as a state machine on a loop: it opens a lease, keeps it alive by the timing
// of core/lock/lease, and accounts for every claim that it may own at the store.
//
// The account is the cure for unknown outcomes. A request whose answer never came may be applied
// seconds later; what it leaves behind would live as long as the lease is renewed. So each claim
// stays in the account until the store acknowledged its end, is left again with growing waits until
// then, and at every renewal the store's own list of the lease is read: what hangs there and no
// live holder wants is left, and what a holder believes in and does not hang there any more is
// lost.
//
// Everything here runs on the loop's thread, except lease_view.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "core/lock/claim.hpp"
#include "core/lock/lease.hpp"
#include "core/loop.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail {

// The lease as other threads may read it, at any time, against both clocks.
class lease_view {
public:
    void set(const lease_machine& m);
    [[nodiscard]] lease_state state(clocks now) const;  // lost before the opening, too
    [[nodiscard]] boot_clock::duration valid_for(clocks now) const;

private:
    mutable std::mutex mutex_;
    std::optional<lease_machine> machine_;
};

// Who wants a claim, as the session speaks to it. It may be destroyed inside any of these.
class claim_holder {
public:
    // The claim is gone together with the session.
    virtual void on_session_lost(std::error_code why) = 0;
    // A renewal was acknowledged; the session may have ceased to be uncertain.
    virtual void on_renewed() = 0;
    // The store's account does not show the claim any more.
    virtual void on_missing() = 0;

protected:
    ~claim_holder() = default;
};

struct session_settings {
    std::chrono::seconds ttl = lease_timing::default_ttl;
    std::string label;                                 // names the holder to operators
    std::chrono::milliseconds request_timeout{2'000};  // of each request but renewals
    std::function<clocks()> read_clocks;               // any thread
};

class session_core {
public:
    using told = unique_function<void(std::error_code)>;

    // keep: whatever must outlive the session, such as what owns the loop and the store.
    session_core(loop& on, lock_store& store, session_settings settings,
                 std::shared_ptr<void> keep = nullptr);
    session_core(const session_core&) = delete;
    session_core& operator=(const session_core&) = delete;
    ~session_core();

    // Opens the lease; repeated, with growing waits, until the deadline while the store cannot be
    // reached. Once. An answer that was lost leaves a lease that ends by itself.
    void open(deadline by, told done);
    // Before open: what will be adopted and entered first, once it is open. See lock_store::expect.
    void expect(std::vector<part> parts, std::string info, bool only_if_free, bool bare);
    // Ends the lease and with it every claim; done with the store's answer, by the deadline. When
    // it is being ended already, with that answer, within the request timeout.
    void close(deadline by, completion<ended_claims> done);
    // Called once when the session ends, after its holders were told; also by close (shut_down).
    void when_lost(told f) { when_lost_ = std::move(f); }

    // Takes the time in. Once it answers lost, every holder has been told.
    lease_state observe();
    // The lease is known to be gone: a store said so in answer to something else.
    void lease_gone();
    // Why it ended; lost before the opening.
    [[nodiscard]] std::error_code ended() const noexcept { return ended_; }

    [[nodiscard]] loop& on() const noexcept { return on_; }
    [[nodiscard]] lock_store& store() const noexcept { return store_; }
    [[nodiscard]] const std::string& lease_id() const noexcept { return lease_; }
    [[nodiscard]] std::chrono::seconds ttl() const noexcept {
        return machine_ ? machine_->ttl() : settings_.ttl;
    }
    [[nodiscard]] clocks now() const { return settings_.read_clocks(); }
    // By when a request sent now must be answered: never after the end of the lease.
    [[nodiscard]] deadline request_by() const;
    [[nodiscard]] std::chrono::milliseconds request_timeout() const noexcept {
        return settings_.request_timeout;
    }
    [[nodiscard]] std::shared_ptr<const lease_view> view() const noexcept { return view_; }

    // A new claim in the account, for a holder that will enter it.
    claim_id adopt(claim_holder& holder, std::vector<std::string> names);
    // What the holder learnt about its claim. After refused and lost it is out of the account.
    void note(claim_id id, claim_event e);
    // The holder wants no more of it. The claim is left; done, which may be empty, receives the
    // first attempt's outcome within the request timeout. What remains is the session's.
    void abandon(claim_id id, told done);
    // Leaves what the account knows of unwanted claims on these names, and waits for the answers,
    // at most a request timeout: one's own debt must not be what one waits for.
    void settle(const std::vector<std::string>& names, unique_function<void()> done);

    // Claims that nobody wants and that may still be there.
    [[nodiscard]] std::size_t debts() const noexcept { return unwanted_.size(); }

private:
    struct account {
        claim_life life;
        claim_holder* holder = nullptr;
        std::vector<std::string> names;
        std::uint64_t changed = 0;   // when it last changed, in readings of the store's list
        std::uint32_t attempts = 0;  // of leaving
        bool asking = false;         // a leave is under way
        op leave;
        op retry;
        std::vector<told> waiting;  // for the answer to the leave under way
    };
    using account_map = std::map<claim_id, account>;
    void tell_end(std::error_code why);
    struct settling;

    void try_open(deadline by, std::uint32_t attempt, told done);
    void step();
    void arm();
    void send_renewal(clocks now);
    void renewed(clocks sent, std::chrono::seconds ttl);
    void read_account();
    void reconcile(std::uint64_t asked, std::vector<claim_id> listed);
    void reconcile_unlisted(std::uint64_t asked, const std::vector<claim_id>& listed);
    void tell_renewed();
    void send_leave(claim_id id);
    void leave_answered(claim_id id, std::error_code error);
    void change(account& a, claim_event e);
    void pace();
    void disown(account_map::iterator at);
    void erase(account_map::iterator at);
    void end(std::error_code why, deadline revoke_by);
    [[nodiscard]] bool open_now() const noexcept { return machine_.has_value() && !ended_; }

    const std::shared_ptr<void> keep_;  // first, so that it goes last
    loop& on_;
    lock_store& store_;
    const session_settings settings_;
    std::string lease_;
    std::optional<lease_machine> machine_;
    const std::shared_ptr<lease_view> view_ = std::make_shared<lease_view>();
    std::error_code ended_;
    told when_lost_;
    bool revoking_ = false;
    std::vector<completion<ended_claims>> closed_;  // who waits for that

    account_map accounts_;
    std::shared_ptr<account_map> ending_;  // those whose holders are being told of the end
    std::set<claim_id> unwanted_;          // those without a holder
    std::size_t waiting_ = 0;              // those that wait for their turn
    lease_use use_ = lease_use::holding;
    std::uint64_t next_claim_ = 1;
    std::uint64_t readings_ = 0;  // of the store's list, counted when asked
    bool reading_ = false;

    op request_;  // open, later revoke
    op timer_;
    op listing_;
    std::map<std::uint64_t, op> renewals_;
    std::uint64_t next_renewal_ = 1;
    // Goes with the session: what was handed out as a plain function looks here first.
    std::shared_ptr<session_core*> self_ = std::make_shared<session_core*>(this);
};

}  // namespace trinco::detail
