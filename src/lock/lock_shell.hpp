// The thread-safe outside of a lock_claim: what trinco::lock_handle is a handle of.
//
// What happens at the store happens on the loop's thread; here is the state that callers see,
// guarded by one mutex, under which also everything is posted to the loop, so that both see one
// order. A wait that its caller has given up is over at once; what the loop learns of it afterwards
// is given back there.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "lock/lock_claim.hpp"
#include "lock/session_shell.hpp"

namespace trinco::detail {

class lock_shell : public std::enable_shared_from_this<lock_shell> {
public:
    using callback = std::function<void(std::error_code)>;

    // At least one part, with distinct names. `kind` is what errors call it; `bare` as of a claim.
    lock_shell(std::shared_ptr<session_shell> session, std::vector<part> parts, std::string info,
               const char* kind = "lock", bool bare = false);
    lock_shell(const lock_shell&) = delete;
    lock_shell& operator=(const lock_shell&) = delete;

    [[nodiscard]] std::error_code check() const { return session_->check(); }
    [[nodiscard]] const char* kind() const noexcept { return kind_; }
    [[nodiscard]] const std::vector<part>& parts() const noexcept { return parts_; }

    // `way`: as each part says, or all of them shared, as readers of a shared_mutex want it.
    enum class way : std::uint8_t { own, shared };
    std::error_code lock(std::stop_token stop, way how = way::own);
    std::error_code try_lock(way how = way::own);
    std::error_code try_lock_for(std::chrono::nanoseconds d, way how = way::own);
    void async_lock(callback done, way how = way::own);
    // The same, with `done` called on the loop's thread: for one that only wakes somebody, and owns
    // nothing that would have to end elsewhere. Of `how` the limit and only_if_free count.
    void async_lock_quick(callback done, lock_request how);
    void cancel();
    // What the next waits show to operators, instead of what it was made with.
    void describe(std::string info);
    // Rewrites that of the lock held; waits for the answer, at most the request timeout.
    std::error_code publish(std::string info);
    // Tells the grants apart; 0 while none is held.
    [[nodiscard]] std::uint64_t grant_number() const;
    // See lock_claim::write; waits as publish does. `lost` also when that grant was another one.
    struct written {
        std::error_code error;
        std::uint64_t revision = 0;
    };
    written write(std::uint64_t grant, std::vector<change> changes, std::chrono::seconds keep);
    // What is held the other way is not_held.
    std::error_code unlock(way how = way::own);
    // Nothing is wanted any more; afterwards only the loop still knows it.
    void retire();

    // session_shell::reason.
    [[nodiscard]] std::string reason(const std::error_code& told) const {
        return session_->reason(told);
    }

    [[nodiscard]] bool held() const;
    [[nodiscard]] std::chrono::nanoseconds valid_for() const;
    // Of the latest grant.
    [[nodiscard]] std::uint64_t token(std::size_t part = 0) const;
    [[nodiscard]] std::stop_token lost() const;
    // Afterwards the one before is not called any more; waits for its call under way, at most 5 s
    // and never for itself.
    void on_loss(callback f);

private:
    // One wait, of a thread or of a callback.
    struct waiter {
        awaited answer;
        callback done;       // instead of a thread
        bool quick = false;  // done is
        way how = way::own;
        std::stop_source lost;  // of the grant it may get: made where running out of memory can
                                // still be told
    };
    struct begun {
        std::error_code error;  // then nothing is under way, and the waiter not told
        std::shared_ptr<waiter> wait;
    };

    begun begin(lock_request what, way how, callback done, bool quick = false);
    std::error_code unlock_any(std::optional<way> how);
    void start(const std::shared_ptr<waiter>& w, lock_request what);
    void answered(const std::shared_ptr<waiter>& w, std::error_code error, const grant& g);
    // Ends this wait, if it is still the one under way, and gives back what it may have got.
    void give_up(const std::shared_ptr<waiter>& w, std::error_code why);
    void tell(const std::shared_ptr<waiter>& w, std::error_code error);
    void lost(std::error_code why);
    void call_on_loss(std::error_code why);

    const std::shared_ptr<session_shell> session_;
    const std::vector<part> parts_;
    const char* const kind_;
    const bool bare_;

    std::unique_ptr<lock_claim> claim_;  // the loop's thread alone

    mutable std::mutex mutex_;  // of what follows
    std::string info_;
    std::shared_ptr<waiter> waiter_;  // while it waits
    std::optional<way> held_;
    std::uint64_t grants_ = 0;  // so far
    std::vector<std::uint64_t> tokens_;
    std::error_code loss_;  // how the latest grant was lost, if it was
    std::optional<std::stop_source> lost_;
    mutable bool token_taken_ = false;  // of that source
    std::shared_ptr<const callback> on_loss_;
    std::thread::id calling_;  // who is in it
    std::condition_variable called_;
};

}  // namespace trinco::detail
