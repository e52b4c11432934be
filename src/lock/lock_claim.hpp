// One lock object on the loop: it acquires, holds and releases claims, one after another. What
// mutexes of every kind share; they differ in the parts they ask for.
//
//                          ┌───────────────────↓
//   idle → settling → entering → waiting → granted → idle
//             ↑                     │
//             └──── stepped back ←──┘
//
// settling leaves one's own debts on these names first. entering repeats the request until its
// outcome is known, which may be the grant. waiting ends with the store's confirmation of the turn.
// Either way the lease is looked at then: a grant that finds the session uncertain is put by until
// the next renewal, and confirmed again. Who waits for several names and heads some of their queues
// but not all for patience_with_some (2 s) steps back: it leaves all of them and enters anew after
// a random 50 to 500 ms. Strangers that nest, and stand ahead here and behind there, get through,
// and no free name is kept from others for longer.
//
// Destroying it gives up whatever it has, without waiting. The loop's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "lock/session_core.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail {

struct lock_request {
    std::vector<part> parts;  // sorted distinct names
    bool only_if_free = false;
    std::optional<deadline> by;  // not_acquired after it
    std::string info;
    bool bare = false;  // see claim
};

class lock_claim final : private claim_holder {
public:
    using told = unique_function<void(std::error_code)>;
    static constexpr std::chrono::seconds patience_with_some{2};

    explicit lock_claim(std::shared_ptr<session_core> session);
    ~lock_claim();
    lock_claim(const lock_claim&) = delete;
    lock_claim& operator=(const lock_claim&) = delete;

    // Errors: would_deadlock while it holds or acquires; conflict (only_if_free); not_acquired by
    // the deadline, or unavailable when the last request failed, and for only_if_free when it had
    // no answer by then; lost and shut_down with the session; what the store refuses. The
    // completion runs later, unless abandon() or the destructor comes first.
    void acquire(lock_request what, completion<grant> done);
    // Gives up the acquisition under way, whose completion will not run, or the lock held.
    void abandon();
    // Gives the lock back; done with the store's answer within the request timeout. not_held when
    // there is nothing to give back.
    void release(told done);
    // Rewrites what is shown of the lock held; not_held while none is, else with the store's
    // answer within the request timeout. Repeatable.
    void publish(std::string info, told done);
    // All changes or none, while the lock is held by the store's own account; see
    // lock_store::write. not_held while none is. lost ends the grant, too. Several at a time, which
    // are answered also when the lock is given back meanwhile.
    void write(const std::vector<change>& changes, std::chrono::seconds keep,
               completion<std::uint64_t> done);
    // Told of each grant that ends otherwise than by release or abandon: lost or shut_down, after
    // which it is not held; and evicted (an operator asks for it), after which it still is.
    void when_lost(told f) { when_lost_ = std::make_shared<told>(std::move(f)); }

    // Granted, not released, and the lease believed in at this moment.
    [[nodiscard]] bool held() const;
    [[nodiscard]] bool idle() const noexcept { return phase_ == phase::idle; }
    // Of the latest grant.
    [[nodiscard]] const grant& granted() const noexcept { return granted_; }
    [[nodiscard]] claim_id id() const noexcept { return id_; }
    [[nodiscard]] const std::shared_ptr<session_core>& session() const noexcept { return session_; }
    // Whether the store has acknowledged the place in the queue: for tests of its order.
    [[nodiscard]] bool queued() const noexcept {
        return phase_ >= phase::waiting && phase_ != phase::stepped_back;
    }

private:
    enum class phase : std::uint8_t {
        idle,
        settling,
        entering,
        waiting,
        put_by,
        stepped_back,
        granted
    };

    void on_session_lost(std::error_code why) override;
    void on_renewed() override;
    void on_missing() override;

    void settle();
    void enter();
    void send_enter();
    void enter_answered(std::error_code error, place at);
    void wait();
    void look_at_turns();
    void step_back();
    void confirmed(grant g);
    void gone(std::error_code why);
    void tell_loss(std::error_code why) const;
    void succeed(grant g);
    void fail(std::error_code why);
    void forget_requests();
    void end_publishing(std::error_code why);

    const std::shared_ptr<session_core> session_;
    phase phase_ = phase::idle;
    lock_request what_;
    completion<grant> done_;
    std::shared_ptr<told> when_lost_;
    claim_id id_;
    grant granted_;
    std::error_code trouble_;  // why the store could not be asked, lately
    std::uint32_t attempts_ = 0;
    op request_;
    op retry_;
    op turns_;
    op publishing_;
    std::shared_ptr<told> publishing_told_;  // of the publish under way
    op limit_;
    op watch_;
    std::map<std::uint64_t, op> writes_;
    std::uint64_t next_write_ = 1;
    std::shared_ptr<int> attempt_;  // of this acquisition: what is handed out looks here first
};

}  // namespace trinco::detail
