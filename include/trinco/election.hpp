// An election: of all who stand for a name one leads, and everybody can see who.
//
//     trinco::election chief(session, "billing/scheduler");
//     chief.campaign("worker-7:8080");      // waits until it leads
//     while (chief.held()) run_schedule(chief.fencing_token());
//
//     trinco::leader_watch watch(session, "billing/scheduler",
//                                [](const std::optional<trinco::leader>& who) { ... });
//
// It is a mutex whose holder has a value: owner, order, waiting, loss, threads, errors and cost are
// those of all locks (trinco/lock_handle.hpp), and what a lock cannot do an election cannot either:
// a leader that is paused does not know that another one leads (trinco/session.hpp). A candidate
// confirms its own entry at the store before it leads, so that one whose lease has run out while it
// waited never does.
//
// Values       1-4096 bytes, shown to everybody: an address, a host name. Of a candidate it is kept
//              from when it begins to stand.
// Stores       all that keep locks. On etcd: an election is that of `etcdctl elect NAME` and of
//              Go's concurrency package. On Consul: it is the lock of `consul lock NAME`, whose
//              key has the value.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "trinco/lock_handle.hpp"

namespace trinco {

namespace detail {
class leader_watch_shell;
}  // namespace detail

class election : public lock_handle {
public:
    // Asks the store nothing. Throws lock_error invalid.
    election(session& on, std::string_view name);

    // Stands, and waits until it leads. Errors beside those of locks: invalid, for a value that is
    // empty or too long.
    void campaign(std::string_view value, std::stop_token stop = {});
    void campaign(std::string_view value, std::stop_token stop, std::error_code& error);
    // Stands for at most that long; a time not above zero leads only if nobody stands. False
    // (not_acquired, conflict in the twin) when it does not lead by then, and stands no more.
    template <class Rep, class Period>
    [[nodiscard]] bool try_campaign_for(std::string_view value,
                                        const std::chrono::duration<Rep, Period>& d) {
        return stand(value, detail::saturated(d));
    }
    template <class Rep, class Period>
    [[nodiscard]] bool try_campaign_for(std::string_view value,
                                        const std::chrono::duration<Rep, Period>& d,
                                        std::error_code& error) {
        return stand(value, detail::saturated(d), error);
    }
    // done is called once, on the session's thread of callbacks.
    void async_campaign(std::string_view value, std::function<void(std::error_code)> done);

    // Changes the leader's value. Errors: invalid, not_held (it does not lead), lost, unavailable,
    // unknown_outcome (it may have changed; say it again), denied. Blocks at most request_timeout.
    void proclaim(std::string_view value);
    void proclaim(std::string_view value, std::error_code& error);

    // Leads no more, and stands no more. As mutex::unlock.
    void resign() noexcept;
    void resign(std::error_code& error) { give_back(error); }

    // Grows with every leader of this name; see trinco::mutex.
    [[nodiscard]] std::uint64_t fencing_token() const { return token_of(0); }
    [[nodiscard]] const std::string& name() const noexcept { return name_of(0); }

private:
    bool stand(std::string_view value, std::chrono::nanoseconds d);
    bool stand(std::string_view value, std::chrono::nanoseconds d, std::error_code& error);
};

struct leader {
    std::string value;        // a holder of another kind, such as a mutex: what it says of itself
    std::uint64_t token = 0;  // 0 where the store does not show it, as on etcd
    bool operator==(const leader&) const = default;
};

// Tells who leads: once at the beginning, and at each change; nullopt: nobody. Changes in quick
// succession may be told as one, the last one never goes untold. While the store is away nothing is
// told.
class leader_watch {
public:
    // `seen` is called on the session's thread of callbacks, in order; it must not throw. Throws
    // lock_error invalid (name, empty function, session), forked.
    leader_watch(session& on, std::string_view name,
                 std::function<void(const std::optional<leader>&)> seen);
    // Nothing is told afterwards: a call under way is waited for, at most 5 s, unless it is the
    // caller.
    ~leader_watch();
    leader_watch(leader_watch&&) noexcept;
    leader_watch& operator=(leader_watch&&) noexcept;

private:
    std::shared_ptr<detail::leader_watch_shell> shell_;
};

}  // namespace trinco
