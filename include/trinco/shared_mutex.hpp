// A lock for readers and writers: many may hold it shared, or one exclusively.
//
//     trinco::shared_mutex prices(session, "prices");
//     {
//         std::shared_lock reading(prices);    // with others who read
//         ...
//     }
//     std::lock_guard writing(prices);         // alone
//     store_prices(prices.fencing_token());
//
// It meets what std::shared_lock, std::unique_lock and std::lock_guard ask for. Owner, order,
// waiting, loss, threads, names, errors and cost are those of all locks: trinco/lock_handle.hpp.
// One object is one contender, which holds it either way, once.
//
// Order        One queue for both, so that neither starves: a reader that comes behind a waiting
//              writer waits for it, and a writer for the readers before it only. There is no way up
//              or down: give it back and take it anew, and read again what was read.
// Tokens       are of exclusive holders alone; readers have none (0). A reader whose lease ran out
//              may read what a later writer is changing: compare a version, where that matters.
// Stores       memory:, local: and etcd:; elsewhere lock_shared is errc::not_supported.
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

class shared_mutex : public lock_handle {
public:
    // Asks the store nothing. `info` is shown to operators beside the lock; at most 4 KiB; empty
    // means the session's label. Throws lock_error invalid.
    shared_mutex(session& on, std::string_view name, std::string_view info = {});

    // Exclusively: as those of trinco::mutex.
    void lock() { wait({}); }
    void lock(std::error_code& error) { wait({}, error); }
    void lock(std::stop_token stop) { wait(std::move(stop)); }
    void lock(std::stop_token stop, std::error_code& error) { wait(std::move(stop), error); }
    [[nodiscard]] bool try_lock() { return wait_for({}); }
    [[nodiscard]] bool try_lock(std::error_code& error) { return wait_for({}, error); }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& d) {
        return wait_for(detail::saturated(d));
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& t) {
        return wait_for(detail::time_to(t));
    }
    void async_lock(std::function<void(std::error_code)> done) { begin(std::move(done)); }
    // Never throws. The twin tells not_held (also when it is held shared), lost, unavailable or
    // unknown_outcome (the session goes on trying).
    void unlock() noexcept;
    void unlock(std::error_code& error) { give_back(error); }

    // With others who hold it shared. Trying succeeds when no exclusive entry is there, held or
    // waiting.
    void lock_shared() { wait({}, taking::shared); }
    void lock_shared(std::error_code& error) { wait({}, error, taking::shared); }
    void lock_shared(std::stop_token stop) { wait(std::move(stop), taking::shared); }
    void lock_shared(std::stop_token stop, std::error_code& error) {
        wait(std::move(stop), error, taking::shared);
    }
    [[nodiscard]] bool try_lock_shared() { return wait_for({}, taking::shared); }
    [[nodiscard]] bool try_lock_shared(std::error_code& error) {
        return wait_for({}, error, taking::shared);
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& d) {
        return wait_for(detail::saturated(d), taking::shared);
    }
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration>& t) {
        return wait_for(detail::time_to(t), taking::shared);
    }
    void async_lock_shared(std::function<void(std::error_code)> done) {
        begin(std::move(done), taking::shared);
    }
    // As unlock; not_held when it is held exclusively.
    void unlock_shared() noexcept;
    void unlock_shared(std::error_code& error) { give_back(error, taking::shared); }

    // Of the latest exclusive grant; as that of trinco::mutex. Zero after a shared one.
    [[nodiscard]] std::uint64_t fencing_token() const { return token_of(0); }
    [[nodiscard]] const std::string& name() const noexcept { return name_of(0); }
};

}  // namespace trinco
