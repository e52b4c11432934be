// A session: the lease on which a process holds its locks.
//
//     auto where = trinco::open("memory:", {trinco::drivers::memory()});
//     trinco::session locks(where);
//     trinco::mutex m(locks, "reports/nightly");
//     std::lock_guard hold(m);
//
// The store grants a lease for a TTL, and the session renews it in the background. All locks of the
// session hang on it: as long as it lives they are held, when it ends the store gives them to
// others. A process that dies releases its locks by no longer renewing, at the latest one TTL
// later; on Consul up to two TTLs and 5 s (trinco/consul.hpp). A cluster whose leader changes
// meanwhile lets the TTL begin anew.
//
// What a lock can and cannot do
//   It lets one holder at a time work, as long as the holder's process runs. The session knows when
//   it must stop believing: its deadline is the time before the last acknowledged renewal was sent,
//   plus the TTL, less a margin of max(250 ms, TTL/20). At the deadline the loss is told (lost(),
//   on_lost) and held() of every lock is false, before the store can give the lock to anybody else.
//   It cannot stop a process that does not run. A process that is suspended, swapped out or starved
//   past its TTL does not know that its time is over; what it does next, before it looks, it does
//   without a lock. Only the resource can refuse that: hand it mutex::fencing_token(), and let it
//   refuse whatever carries a lower one than it has seen.
//
// States
//   held        renewed within the last TTL/2: locks may be granted
//   uncertain   no renewal acknowledged for TTL/2, or the wall clock moved against the boot clock
//               (a virtual machine that was paused): what is held stays held, nothing new is
//               granted until a renewal succeeds
//   lost        final: the deadline passed, the store ended the lease, or close(). Locks of this
//               session cannot be used any more; make a new session.
//   Renewals begin at TTL/3 and are repeated every TTL/15, so that a store that is away for about
//   half a TTL takes away nothing that is held (8 s of 15 s; of a TTL below 5 s less, since the
//   margin is a larger part of it). `trinco lock` and `trinco elect` begin to stop their command
//   --grace before the deadline, by default TTL/5 and at most 5 s: it notices nothing of about a
//   third of a TTL (5 s of 15 s). `trinco doctor` says so of an etcd.
//
// Loss         Told once, as a std::stop_token and as a callback. Loss by the deadline comes in
//              time, as said above. A lease that is revoked at the store is learnt of after the
//              fact, within a round trip when a lock of it is watched, else at the next renewal.
//              At a loss first state() and held() change, then the tokens of all locks are
//              requested, on a thread that does nothing else, and beside it the callbacks run. A
//              slow callback so never delays a token. What a std::stop_callback does runs inside
//              the request, where it may delay the tokens of other locks: let it set a flag, close
//              a socket, wake somebody, and not wait for anything.
// Nesting      One session holds many locks for many threads. A caller that waits for one lock
//              while it holds another can deadlock with one that nests them the other way round;
//              the store does not detect it. Take locks in one order everywhere, or give the inner
//              wait a limit (mutex::try_lock_for).
// Unknown      A request may be lost on its way back: the session accounts for everything that it
//              may own at the store, and gives back what nobody wants.
// Threads      Every member from any thread.
// Ownership    Locks keep what they need alive: a session may be destroyed before its mutexes,
//              which are then lost. It keeps the store open.
// Callbacks    Ours never run under a lock of ours, and one after another, in order, on one thread
//              of the session, which is made for the first of them. They may call anything, also
//              what waits. A slow one delays the next, never a renewal or a token. They must not
//              throw (std::terminate). When the system refuses that thread they run on the one that
//              renews, where waiting for a lock is refused (would_deadlock).
// Closing      The destructor closes: it ends the lease, which frees all its locks at once, and
//              waits at most request_timeout for the answer, and at most 5 s for callbacks that
//              run or are due; not when one of them calls it.
// fork         In a child everything says errc::forked, and destroying it there is harmless.
// Errors       lock_error, a std::system_error whose what() is one sentence; every throwing member
//              has a twin that sets a std::error_code.
// Cost         One request when it opens, one renewal and one reading of its account every TTL/3.
//              One session serves thousands of locks; one a process is the right number.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>

#include "trinco/error.hpp"

namespace trinco {

class store;

namespace detail {
class session_shell;
struct lock_access;
}  // namespace detail

class lock_error : public std::system_error {
public:
    lock_error(std::error_code code, std::string sentence);
    [[nodiscard]] const char* what() const noexcept override { return sentence_.c_str(); }

private:
    std::string sentence_;
};

struct session_options {
    // How long the store keeps the locks of a process that died. 1 s ... 24 h, and what the store
    // allows. Default 15 s: shorter means faster take-over and less patience with a store or a
    // network that is away, of which about half a TTL is survived (States). It must be well above
    // ten round trips to the store. On Consul at least 10 s, and kept for up to twice as long.
    std::chrono::seconds ttl{15};
    // Names the holder to operators; at most 256 bytes. Default: host name and process id.
    std::string label{};
    // The longest that opening waits for the store. 0 ... 1 h. Default 5 s.
    std::chrono::milliseconds open_timeout{5'000};
    // Of each request. It bounds release, try_lock and closing. 10 ms ... 1 min. Default 2 s.
    std::chrono::milliseconds request_timeout{2'000};
    // Called once when the session ends other than by close() or its destructor.
    std::function<void(std::error_code)> on_lost{};
};

enum class session_state { held, uncertain, lost };

class session {
public:
    // Opens the lease; blocks at most open_timeout. Errors: invalid (an option, an empty store),
    // not_supported (a store without locks), unavailable, denied, busy, forked.
    explicit session(const store& over, const session_options& options = {});
    // The twin without exceptions: on failure a session that is lost.
    session(const store& over, const session_options& options, std::error_code& error);
    ~session();
    session(session&&) noexcept;
    session& operator=(session&&) noexcept;

    [[nodiscard]] session_state state() const;
    // How long it may believe yet, whatever happens; zero when lost, and while the clocks are in
    // doubt. Valid at the moment of the call.
    [[nodiscard]] std::chrono::nanoseconds valid_for() const;
    // Requested when the session ends, in any way; see Loss.
    [[nodiscard]] std::stop_token lost() const;
    // Why it ended: lost, shut_down (closed), or what opening failed with. None while it lives;
    // lost when moved from.
    [[nodiscard]] std::error_code why() const;
    // The store's name of the lease, as operators see it.
    [[nodiscard]] std::string id() const;
    // As granted; may be longer than asked for.
    [[nodiscard]] std::chrono::seconds ttl() const;

    // Ends the lease and all locks of it. Blocks at most request_timeout; without an answer by then
    // (unavailable, unknown_outcome) the lease ends by itself, at most a TTL later, on Consul two.
    // Repeatable.
    void close();
    void close(std::error_code& error);

private:
    friend struct detail::lock_access;
    explicit session(std::shared_ptr<detail::session_shell> shell) noexcept;
    std::shared_ptr<detail::session_shell> shell_;
    std::error_code refused_;  // why there is no shell_: nothing could be opened
};

}  // namespace trinco
