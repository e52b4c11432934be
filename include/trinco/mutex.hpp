// A mutex that is shared by all processes which use the same store and the same name.
//
//     trinco::mutex m(session, "reports/nightly");
//     {
//         std::lock_guard hold(m);
//         write_report(m.fencing_token());     // the resource refuses lower tokens
//     }
//     if (m.try_lock_for(2s)) { ... m.unlock(); }
//
// It is a Lockable and a TimedLockable: std::lock_guard, std::unique_lock and std::scoped_lock
// work, also std::scoped_lock over several (which backs off; lock order is the better cure, see
// session.hpp). What a lock can and cannot do is said in trinco/session.hpp, and is worth reading
// before relying on one.
//
// Who owns     The object, not a thread: it may be locked in one and unlocked in another. Each
//              object is one contender with a place of its own in the queue, also within one
//              session; two objects of one name exclude each other. It is not recursive, and one
//              object is not to be shared by contending threads as a std::mutex is: locking it
//              while it is held or waited for is errc::would_deadlock. Give each contender its own.
// Order        Where the store keeps a queue (memory:, local:) locks are granted in the order
//              in which the store took the requests. A waiter costs the store nothing while it
//              waits.
// Waiting      lock() waits as long as it takes; lock(stop_token), try_lock_for and try_lock_until
//              end sooner, and at once when their time comes: what may remain at the store is
//              cleared in the background. After waiting, ownership is confirmed by a read at the
//              store and the session's state before lock() returns.
//              While the store cannot be reached, waiting goes on until the session is lost.
// Holding      held() says whether it may be believed at this moment. A loss is told by lost() and
//              on_loss(): errc::lost and errc::shut_down (the session was closed), after which it
//              is not held; and errc::evicted, an operator's wish to have it back, after which it
//              still is: stop and unlock. After a loss the object may be locked again when its
//              session lives; unlocking what was lost does nothing.
// Releasing    Removes exactly this object's entry and never another's, waits at most the session's
//              request_timeout for the answer, and does not throw. Without an answer the session
//              goes on until it has one; others wait for it until then, at most a TTL.
//
// Threads      Every member from any thread, except that moving and destroying exclude others.
// Ownership    Keeps its session's lease alive in no way: when the session is closed, it is lost.
//              One that was moved from may only be destroyed or assigned to.
// Callbacks    As of the session: on its thread, in order, outside our locks. So are the tokens of
//              lost(), which wait for no callback; what is registered on them must be quick.
// Names        1-200 of [A-Za-z0-9._/-]: segments separated by '/', none of them empty or "..", no
//              '/' at the end. One '/' may lead and is a part of the name: "/a" and "a" are two
//              locks. Consul has no such keys: there a leading '/' will be errc::invalid.
// Errors       lock_error, and twins with std::error_code: invalid (name), would_deadlock,
//              canceled, unavailable and unknown_outcome (the store did not answer in time),
//              denied, lost, shut_down, forked. Being held by somebody else is not an error of
//              try_lock and its kin: they return false.
// Cost         Uncontended: one request to lock, one to unlock. held(), valid_for(): about 100 ns,
//              no I/O. A waiting mutex is a few hundred bytes; blocking forms also hold the calling
//              thread, async_lock does not.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

#include "trinco/error.hpp"
#include "trinco/session.hpp"

namespace trinco {

namespace detail {
class mutex_shell;

// In nanoseconds, rounded up; what does not fit is as long as fits, what is not above zero is zero.
template <class Rep, class Period>
[[nodiscard]] std::chrono::nanoseconds saturated(const std::chrono::duration<Rep, Period>& d) {
    const std::chrono::duration<double> about(d);
    if (!(about.count() > 0)) return {};
    if (about >= std::chrono::hours(24 * 365 * 290)) return std::chrono::nanoseconds::max();
    return std::chrono::ceil<std::chrono::nanoseconds>(d);
}
template <class Clock, class Duration>
[[nodiscard]] std::chrono::nanoseconds time_to(const std::chrono::time_point<Clock, Duration>& t) {
    using about = std::chrono::duration<double>;
    const auto now = Clock::now();
    // Neither a comparison nor a difference of two time points is safe at the ends of their range.
    const auto left = about(t.time_since_epoch()) - about(now.time_since_epoch());
    if (left >= std::chrono::hours(24 * 365 * 200)) return std::chrono::nanoseconds::max();
    if (left <= -std::chrono::hours(1)) return {};
    return saturated(t - now);
}
}  // namespace detail

class mutex {
public:
    // Asks the store nothing. `info` is shown to operators beside the lock; at most 4 KiB; empty
    // means the session's label. Throws lock_error invalid.
    mutex(session& on, std::string_view name, std::string_view info = {});
    // Gives up an async_lock under way, whose callback is still called (canceled), perhaps after
    // this; and unlocks. What was set by on_loss is not called afterwards: a call under way is
    // waited for, at most 5 s, unless it is the caller.
    ~mutex();
    mutex(mutex&&) noexcept;
    mutex& operator=(mutex&&) noexcept;

    // Waits until it is granted.
    void lock();
    void lock(std::error_code& error);
    // The same, until stop is requested: canceled.
    void lock(std::stop_token stop);
    void lock(std::stop_token stop, std::error_code& error);

    // Takes it if nobody holds it or waits for it, and leaves nothing behind when not. Asks the
    // store once, at most request_timeout. False (conflict in the twin) when it is taken.
    [[nodiscard]] bool try_lock();
    [[nodiscard]] bool try_lock(std::error_code& error);

    // Waits at most that long. False (not_acquired in the twin) when the time is over; unavailable
    // when requests to the store failed until then. A duration not above zero is try_lock; one of
    // centuries is as good as lock().
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
        return wait_for(detail::saturated(d));
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d,
                                    std::error_code& error) {
        return wait_for(detail::saturated(d), error);
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
        return wait_for(detail::time_to(t));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t,
                                      std::error_code& error) {
        return wait_for(detail::time_to(t), error);
    }

    // Begins to wait and returns; done is called once, on the session's thread of callbacks, with
    // no error when it is held. cancel() ends the wait with canceled. Thousands may wait so.
    void async_lock(std::function<void(std::error_code)> done);
    // Ends a wait under way, in whichever form; nothing when there is none.
    void cancel();

    // Never throws; see above. The twin tells not_held, lost (there was nothing to give back),
    // unavailable or unknown_outcome (the session goes on trying).
    void unlock() noexcept;
    void unlock(std::error_code& error);

    // Granted, not unlocked, not lost, and the session's deadline ahead, at this moment.
    [[nodiscard]] bool held() const;
    // How long held() will stay true whatever happens at the store short of eviction; zero when not
    // held.
    [[nodiscard]] std::chrono::nanoseconds valid_for() const;
    // Grows with every grant of this name, by anybody, for ever; below 2^53. The resource must
    // refuse a token lower than the highest it has seen. Zero before the first grant, and it keeps
    // the last one after unlocking.
    [[nodiscard]] std::uint64_t fencing_token() const;
    // Of the grant held now: requested when it is lost or an operator asks for it. After a loss it
    // stays the same until unlock or the next grant; empty (stop_possible() is false) otherwise.
    [[nodiscard]] std::stop_token lost() const;
    // Called at each loss, after its token was requested; empty: no longer. Replaces the one set
    // before, which is not called afterwards: a call under way is waited for as by the destructor.
    void on_loss(std::function<void(std::error_code)> f);
    [[nodiscard]] const std::string& name() const noexcept;

private:
    friend struct detail::lock_access;
    bool wait_for(std::chrono::nanoseconds d);
    bool wait_for(std::chrono::nanoseconds d, std::error_code& error);
    std::shared_ptr<detail::mutex_shell> shell_;
};

}  // namespace trinco
