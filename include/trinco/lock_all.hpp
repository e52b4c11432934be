// Several locks taken in one step, all or none.
//
//     trinco::lock_all both(session, {"accounts/7", "accounts/9"});
//     {
//         std::lock_guard hold(both);
//         transfer(both.fencing_token("accounts/7"), both.fencing_token("accounts/9"));
//     }
//
// All names are entered in one transaction of the store, so that whoever takes several locks so
// cannot deadlock with others who do, in whatever order they name them. Owner, waiting, loss,
// threads, errors and cost are those of all locks: trinco/lock_handle.hpp. It excludes, and is
// excluded by, a mutex of each name.
//
// Names        1 ... 32 distinct ones, in any order.
// Strangers    who take one lock while they hold another, such as nested `etcdctl lock`, can stand
//              behind us in one queue while we stand behind them in another. Who heads some of his
//              queues but not all for 2 s therefore steps back from all of them and enters again
//              after 50 ... 500 ms, at their ends. So no free name is kept from others for long,
//              and nobody waits for ever; but where a name is held for more than 2 s at a time
//              again and again, it is a matter of luck when all are had.
// Deadlock     is impossible only among callers that hold nothing else while they wait.
// Loss         of one name is the loss of all: what is left is given back.
// Tokens       one a name, as those of trinco::mutex.
// Stores       memory:, local:, etcd: and Consul, which takes all or none without an order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trinco/lock_handle.hpp"

namespace trinco {

class lock_all : public lock_handle {
public:
    // Asks the store nothing. `info` is shown to operators beside each lock; at most 4 KiB; empty
    // means the session's label. Throws lock_error invalid: a bad name, one twice, none, or more
    // than 32.
    lock_all(session& on, std::span<const std::string> names, std::string_view info = {});
    lock_all(session& on, std::initializer_list<std::string_view> names,
             std::string_view info = {});

    // As those of trinco::mutex, for all names together.
    void lock() { wait({}); }
    void lock(std::error_code& error) { wait({}, error); }
    void lock(std::stop_token stop) { wait(std::move(stop)); }
    void lock(std::stop_token stop, std::error_code& error) { wait(std::move(stop), error); }
    // Takes all if all are free, and leaves nothing behind when one is not.
    [[nodiscard]] bool try_lock() { return wait_for({}); }
    [[nodiscard]] bool try_lock(std::error_code& error) { return wait_for({}, error); }
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
    void async_lock(std::function<void(std::error_code)> done) { begin(std::move(done)); }
    void unlock() noexcept;
    void unlock(std::error_code& error) { give_back(error); }

    // Of this name's latest grant; zero before the first, and for a name that is not among them.
    [[nodiscard]] std::uint64_t fencing_token(std::string_view name) const;
    // In the order of the queue, which is that of their bytes.
    [[nodiscard]] std::vector<std::string> names() const;
};

}  // namespace trinco
