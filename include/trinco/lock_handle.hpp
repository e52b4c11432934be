// What all locks of a session have in common, whatever they let in: mutex, shared_mutex, semaphore
// and lock_all are made of this. It is not used by itself.
//
// Who owns     The object, not a thread: it may be taken in one and given back in another. Each
//              object is one contender with a place of its own in the queue, also within one
//              session; it is not recursive, and one object is not to be shared by contending
//              threads: taking it while it is held or waited for is errc::would_deadlock. Give each
//              contender its own.
// Order        Where the store keeps a queue (memory:, local:, etcd:) locks are granted in the
//              order in which the store took the requests. Consul keeps none: whoever asks first
//              when a lock is free has it. A waiter costs the store nothing while it waits, but on
//              Consul a blocking query.
// Waiting      goes on as long as it takes, or ends with a stop_token or a time, and then at once:
//              what may remain at the store is cleared in the background. After waiting, ownership
//              is confirmed by a read at the store and the session's state before it returns. While
//              the store cannot be reached, waiting goes on until the session is lost.
// Holding      held() says whether it may be believed at this moment. A loss is told by lost() and
//              on_loss(): errc::lost and errc::shut_down (the session was closed), after which it
//              is not held; and errc::evicted, an operator's wish to have it back, after which it
//              still is: stop and give it back. After a loss the object may be taken again when its
//              session lives; giving back what was lost does nothing.
// Giving back  removes exactly this object's entry and never another's, waits at most the session's
//              request_timeout for the answer, and does not throw. Without an answer the session
//              goes on until it has one; others wait for it until then, at most a TTL, on Consul
//              up to two and its lock-delay (trinco/consul.hpp).
//
// Threads      Every member from any thread, except that moving and destroying exclude others.
// Ownership    Keeps its session's lease alive in no way: when the session is closed, it is lost.
//              One that was moved from may only be destroyed or assigned to.
// Callbacks    As of the session: on its thread, in order, outside our locks. So are the tokens of
//              lost(), which wait for no callback; what is registered on them must be quick.
// Names        1-200 of [A-Za-z0-9._/-]: segments separated by '/', none of them empty or "..", no
//              '/' at the end. One '/' may lead and is a part of the name: "/a" and "a" are two
//              locks. All kinds of locks of one name stand in one queue. On Consul errc::invalid is
//              also a leading '/', a segment "." and a last one ".lock"; and a semaphore and the
//              other kinds of one name refuse each other (errc::limit_mismatch).
// Errors       lock_error, and twins with std::error_code: invalid (name), would_deadlock,
//              canceled, unavailable and unknown_outcome (the store did not answer in time),
//              denied, lost, shut_down, forked; not_supported where the store does not offer this
//              kind. Being held by somebody else is not an error of those that try: they return
//              false.
// Cost         Uncontended: one request to take it, one to give it back. held(), valid_for(): about
//              100 ns, no I/O. A waiting object is a few hundred bytes; blocking forms also hold
//              the calling thread, asynchronous ones do not.
#pragma once

#include <chrono>
#include <cstddef>
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
class lock_shell;

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

class lock_handle {
public:
    // Ends a wait under way, in whichever form; nothing when there is none.
    void cancel();
    // Granted, not given back, not lost, and the session's deadline ahead, at this moment.
    [[nodiscard]] bool held() const;
    // How long held() will stay true whatever happens at the store short of eviction; zero when not
    // held.
    [[nodiscard]] std::chrono::nanoseconds valid_for() const;
    // Of the grant held now: requested when it is lost or an operator asks for it. After a loss it
    // stays the same until it is given back or granted again; empty (stop_possible() is false)
    // otherwise.
    [[nodiscard]] std::stop_token lost() const;
    // Called at each loss, after its token was requested; empty: no longer. Replaces the one set
    // before, which is not called afterwards: a call under way is waited for as by the destructor.
    void on_loss(std::function<void(std::error_code)> f);

protected:
    // How it is taken. Only shared_mutex offers two ways.
    enum class taking : std::uint8_t { own, shared };

    explicit lock_handle(std::shared_ptr<detail::lock_shell> shell) noexcept;
    // Gives up a wait under way, whose callback is still called (canceled), perhaps after this; and
    // gives back what is held. What was set by on_loss is not called afterwards: a call under way
    // is waited for, at most 5 s, unless it is the caller.
    ~lock_handle();
    lock_handle(lock_handle&&) noexcept;
    lock_handle& operator=(lock_handle&&) noexcept;

    void wait(std::stop_token stop, taking how = taking::own);
    void wait(std::stop_token stop, std::error_code& error, taking how = taking::own);
    // A time not above zero asks the store once.
    [[nodiscard]] bool wait_for(std::chrono::nanoseconds d, taking how = taking::own);
    [[nodiscard]] bool wait_for(std::chrono::nanoseconds d, std::error_code& error,
                                taking how = taking::own);
    void begin(std::function<void(std::error_code)> done, taking how = taking::own);
    void give_back(std::error_code& error, taking how = taking::own);
    // What is shown of it from the next wait on; and of the one held now.
    void describe(std::string_view info);
    void publish(std::string_view info, std::error_code& error);
    [[noreturn]] void raise(std::error_code error) const;
    [[nodiscard]] std::uint64_t token_of(std::size_t part) const;
    [[nodiscard]] const std::string& name_of(std::size_t part) const noexcept;
    [[nodiscard]] std::size_t parts() const noexcept;

private:
    friend class guarded_write;
    std::shared_ptr<detail::lock_shell> shell_;
};

}  // namespace trinco
