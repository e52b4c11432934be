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
// work, also std::scoped_lock over several (which backs off; trinco/lock_all.hpp takes them in one
// step, which is better). What a lock can and cannot do is said in trinco/session.hpp, and is worth
// reading before relying on one. Owner, order, waiting, loss, threads, names, errors and cost are
// those of all locks: trinco/lock_handle.hpp.
//
// Two objects of one name exclude each other, also in one process and one session.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "trinco/lock_handle.hpp"

namespace trinco {

class mutex : public lock_handle {
public:
    // Asks the store nothing. `info` is shown to operators beside the lock; at most 4 KiB; empty
    // means the session's label. Throws lock_error invalid.
    mutex(session& on, std::string_view name, std::string_view info = {});

    // Waits until it is granted.
    void lock() { wait({}); }
    void lock(std::error_code& error) { wait({}, error); }
    // The same, until stop is requested: canceled.
    void lock(std::stop_token stop) { wait(std::move(stop)); }
    void lock(std::stop_token stop, std::error_code& error) { wait(std::move(stop), error); }

    // Takes it if nobody holds it or waits for it, and leaves nothing behind when not. Asks the
    // store once, at most request_timeout. False (conflict in the twin) when it is taken.
    [[nodiscard]] bool try_lock() { return wait_for({}); }
    [[nodiscard]] bool try_lock(std::error_code& error) { return wait_for({}, error); }

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
    void async_lock(std::function<void(std::error_code)> done) { begin(std::move(done)); }

    // Never throws. The twin tells not_held, lost (there was nothing to give back), unavailable or
    // unknown_outcome (the session goes on trying).
    void unlock() noexcept;
    void unlock(std::error_code& error) { give_back(error); }

    // Grows with every grant of this name, by anybody, for ever; below 2^53. The resource must
    // refuse a token lower than the highest it has seen. Zero before the first grant, and it keeps
    // the last one after unlocking.
    [[nodiscard]] std::uint64_t fencing_token() const { return token_of(0); }
    [[nodiscard]] const std::string& name() const noexcept { return name_of(0); }
};

}  // namespace trinco
