// A semaphore: at most n at a time, over all processes which use the same store and name.
//
//     trinco::semaphore slots(session, "imports", 4);
//     slots.acquire();
//     run_import();
//     slots.release();                        // or when the object goes
//
// Each object takes one of the n permits, as each trinco::mutex is one contender; who wants three
// makes three. Owner, order, waiting, loss, threads, names, errors and cost are those of all locks:
// trinco/lock_handle.hpp. A permit that nobody gives back, because its process died, is free again
// at the latest a TTL later, on Consul two.
//
// n            1 ... 1,000,000; on Consul at most 500, more is errc::invalid. It is not kept by
//              anybody but those who hold or wait: all of them must name the same. Another n while
//              they do is errc::limit_mismatch, for who comes later. A mutex of the same name
//              excludes all permits; on Consul each of the two refuses the other. There the permits
//              of holders that died count for this until somebody with the same n takes one.
// Woken        The first in line is woken by whichever holder leaves, the others by nobody; on
//              Consul all who wait are.
// Tokens       None: several hold it at once, so that a resource could not tell an old holder by
//              its number.
// Stores       memory:, local:, etcd: and Consul, where permits are those of `consul lock -n` and
//              Go's api.Semaphore, and whoever waits has no place in a line.
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

class semaphore : public lock_handle {
public:
    // Asks the store nothing. `info` is shown to operators beside the permit; at most 4 KiB; empty
    // means the session's label. Throws lock_error invalid.
    semaphore(session& on, std::string_view name, std::uint32_t n, std::string_view info = {});

    // Waits until a permit is free and the turn is this object's; with a stop_token until then
    // (canceled).
    void acquire() { wait({}); }
    void acquire(std::error_code& error) { wait({}, error); }
    void acquire(std::stop_token stop) { wait(std::move(stop)); }
    void acquire(std::stop_token stop, std::error_code& error) { wait(std::move(stop), error); }
    // Takes one if one is free and nobody waits; leaves nothing behind when not. False (conflict in
    // the twin) then.
    [[nodiscard]] bool try_acquire() { return wait_for({}); }
    [[nodiscard]] bool try_acquire(std::error_code& error) { return wait_for({}, error); }
    // False (not_acquired in the twin) when the time is over.
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& d) {
        return wait_for(detail::saturated(d));
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_acquire_for(const std::chrono::duration<Rep, Period>& d,
                                       std::error_code& error) {
        return wait_for(detail::saturated(d), error);
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_acquire_until(const std::chrono::time_point<Clock, Duration>& t) {
        return wait_for(detail::time_to(t));
    }
    // done is called once, on the session's thread of callbacks.
    void async_acquire(std::function<void(std::error_code)> done) { begin(std::move(done)); }

    // Never throws. The twin tells not_held, lost (there was nothing to give back), unavailable or
    // unknown_outcome (the session goes on trying).
    void release() noexcept;
    void release(std::error_code& error) { give_back(error); }

    [[nodiscard]] const std::string& name() const noexcept { return name_of(0); }
    [[nodiscard]] std::uint32_t permits() const noexcept { return permits_; }

private:
    std::uint32_t permits_;
};

}  // namespace trinco
