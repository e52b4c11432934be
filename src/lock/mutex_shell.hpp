// The thread-safe outside of a lock_claim: what trinco::mutex is a handle of.
//
// What happens at the store happens on the loop's thread; here is the state that callers see,
// guarded by one mutex, under which also everything is posted to the loop, so that both see one
// order. A wait that its caller has given up is over at once; what the loop learns of it afterwards
// is given back there.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include "lock/lock_claim.hpp"
#include "lock/session_shell.hpp"

namespace trinco::detail {

class mutex_shell : public std::enable_shared_from_this<mutex_shell> {
public:
    using callback = std::function<void(std::error_code)>;

    mutex_shell(std::shared_ptr<session_shell> session, std::vector<part> parts, std::string info);
    mutex_shell(const mutex_shell&) = delete;
    mutex_shell& operator=(const mutex_shell&) = delete;

    [[nodiscard]] std::error_code check() const { return session_->check(); }
    [[nodiscard]] const std::string& name() const noexcept { return parts_.front().name; }

    std::error_code lock(std::stop_token stop);
    std::error_code try_lock();
    std::error_code try_lock_for(std::chrono::nanoseconds d);
    void async_lock(callback done);
    // The same, with `done` called on the loop's thread: for one that only wakes somebody, and owns
    // nothing that would have to end elsewhere. Of `how` the limit and only_if_free count.
    void async_lock_quick(callback done, lock_request how);
    void cancel();
    std::error_code unlock();
    // Nothing is wanted any more; afterwards only the loop still knows it.
    void retire();

    [[nodiscard]] bool held() const;
    [[nodiscard]] std::chrono::nanoseconds valid_for() const;
    [[nodiscard]] std::uint64_t token() const;
    [[nodiscard]] std::stop_token lost() const;
    // Afterwards the one before is not called any more; waits for its call under way, at most 5 s
    // and never for itself.
    void on_loss(callback f);

private:
    // One wait, of a thread or of a callback.
    struct waiter {
        awaited answer;
        callback done;          // instead of a thread
        bool quick = false;     // done is
        std::stop_source lost;  // of the grant it may get: made where running out of memory can
                                // still be told
    };
    struct begun {
        std::error_code error;  // then nothing is under way, and the waiter not told
        std::shared_ptr<waiter> wait;
    };

    begun begin(lock_request what, callback done, bool quick = false);
    void start(const std::shared_ptr<waiter>& w, lock_request what);
    void answered(const std::shared_ptr<waiter>& w, std::error_code error, const grant& g);
    // Ends this wait, if it is still the one under way, and gives back what it may have got.
    void give_up(const std::shared_ptr<waiter>& w, std::error_code why);
    void tell(const std::shared_ptr<waiter>& w, std::error_code error);
    void lost(std::error_code why);
    void call_on_loss(std::error_code why);

    const std::shared_ptr<session_shell> session_;
    const std::vector<part> parts_;
    const std::string info_;

    std::unique_ptr<lock_claim> claim_;  // the loop's thread alone

    mutable std::mutex mutex_;        // of what follows
    std::shared_ptr<waiter> waiter_;  // while it waits
    bool held_ = false;
    std::uint64_t token_ = 0;
    std::error_code loss_;  // how the latest grant was lost, if it was
    std::optional<std::stop_source> lost_;
    mutable bool token_taken_ = false;  // of that source
    std::shared_ptr<const callback> on_loss_;
    std::thread::id calling_;  // who is in it
    std::condition_variable called_;
};

}  // namespace trinco::detail
