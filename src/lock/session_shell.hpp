// The thread-safe outside of a session_core: what trinco::session is a handle of.
//
// The core lives and dies on the loop's thread; here are the options, the lease as all threads read
// it, the loss as they are told of it, and the blocking forms with their bounds.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

#include "core/lock/lease.hpp"
#include "core/loop.hpp"
#include "core/wakeup.hpp"
#include "lock/callback_queue.hpp"
#include "lock/session_core.hpp"
#include "store/lock_store.hpp"
#include "trinco/session.hpp"

namespace trinco::detail {

// Where a session lives: a loop that runs and a store on it.
struct lock_backend {
    loop* on = nullptr;
    lock_store* store = nullptr;
    std::shared_ptr<void> keep;              // both, and their thread
    std::function<std::error_code()> check;  // forked, shut_down; any thread
    std::function<bool()> on_thread;         // whether the caller is the loop's thread
};

// One answer that a thread waits for. The first one counts. Who sets it shares its ownership with
// who waits: that one goes on while set() still runs.
class awaited {
public:
    // Whether this was the first.
    bool set(std::error_code error);
    // Whether it came by then.
    bool wait_until(std::chrono::steady_clock::time_point by);
    void wait();
    [[nodiscard]] bool is_set() const;
    [[nodiscard]] std::error_code error() const;

private:
    mutable std::mutex mutex_;
    wakeup done_;
    bool set_ = false;
    std::error_code error_;
};

class session_shell : public std::enable_shared_from_this<session_shell> {
public:
    session_shell(lock_backend where, session_options options);
    ~session_shell();
    session_shell(const session_shell&) = delete;
    session_shell& operator=(const session_shell&) = delete;

    // One sentence about the first bad option; empty when all are good.
    [[nodiscard]] static std::string complaint(const session_options& options);

    // What is to be entered first, by `enter` on the loop's thread, as soon as it is open and
    // before the caller of open is told.
    struct first_claim {
        std::vector<part> parts;
        std::string info;
        bool only_if_free = false;
        bool bare = false;
        unique_function<void()> enter;
    };
    std::error_code open(std::optional<first_claim> first = std::nullopt) {
        return opened(begin_to_open(std::move(first)));
    }
    // The same in two steps, for one who does something else meanwhile: run the loop, say.
    [[nodiscard]] std::shared_ptr<awaited> begin_to_open(std::optional<first_claim> first);
    // `in_vain`: asked again and again; true gives it up as if its time were over.
    std::error_code opened(const std::shared_ptr<awaited>& answer,
                           const std::function<bool()>& in_vain = {});
    std::error_code close();
    // Waits for callbacks that run or are due, in bounded time; for the destructor of the session.
    void drain_callbacks();

    [[nodiscard]] lease_state state() const { return view_->state(read_clocks()); }
    [[nodiscard]] boot_clock::duration valid_for() const { return view_->valid_for(read_clocks()); }
    [[nodiscard]] std::stop_token lost() const;
    [[nodiscard]] std::error_code why() const;
    [[nodiscard]] std::string id() const;
    [[nodiscard]] std::chrono::seconds ttl() const;
    // lock_store::live_descriptor of the lease.
    [[nodiscard]] int live_descriptor() const;

    // Why something was told this error, in the store's own words; empty when it says nothing, also
    // not within a second. Any thread; asks the loop's.
    [[nodiscard]] std::string trouble(const std::error_code& told) const;
    // That, or else what the error says.
    [[nodiscard]] std::string reason(const std::error_code& told) const;

    // For the locks of the session.
    [[nodiscard]] std::error_code check() const { return where_.check(); }
    [[nodiscard]] loop& on() const noexcept { return *where_.on; }
    [[nodiscard]] const std::shared_ptr<session_core>& core() const noexcept { return core_; }
    // Whether the caller is the loop's thread, which must not wait for itself.
    [[nodiscard]] bool on_loop_thread() const { return where_.on_thread(); }
    // Tells of a loss: requests the token, and calls f, in the order of the losses. The token waits
    // for no f of anybody, and is requested before its own f is called. f may be empty.
    void tell_loss(std::stop_source token, unique_function<void()> f);
    [[nodiscard]] callback_queue& callbacks() noexcept { return callbacks_; }
    [[nodiscard]] std::chrono::milliseconds request_timeout() const noexcept {
        return options_.request_timeout;
    }
    [[nodiscard]] const std::string& label() const noexcept { return options_.label; }

private:
    [[nodiscard]] static clocks read_clocks();
    void ended(std::error_code why);
    void has_opened(std::error_code error);

    const lock_backend where_;
    session_options options_;  // on_lost is the loop's, the rest constant
    callback_queue losses_{"trinco-losses"};
    callback_queue callbacks_{"trinco-calls"};
    std::shared_ptr<session_core> core_;
    std::shared_ptr<const lease_view> view_;
    std::stop_source lost_;

    mutable std::mutex mutex_;  // of what follows
    mutable bool token_taken_ = false;
    std::error_code why_;
    std::string id_;
    std::chrono::seconds ttl_{0};
};

// How tests and the other kinds of locks reach inside.
struct lock_access {
    // What the constructor of a session begins with: checks, and a shell that is still to be
    // opened. Throws lock_error.
    [[nodiscard]] static std::shared_ptr<session_shell> make_shell(const store& over,
                                                                   const session_options& options);
    // What it throws when that does not succeed, with the store's own reason.
    [[nodiscard]] static lock_error no_session(const store& over, const session_shell& of,
                                               const std::error_code& error);
    [[nodiscard]] static std::shared_ptr<session_shell> shell(const session& s) { return s.shell_; }
    [[nodiscard]] static session wrap(std::shared_ptr<session_shell> shell) noexcept {
        return session(std::move(shell));
    }
};

}  // namespace trinco::detail
