// One who wants a lock: a session of its own and the lock on it, for a thread that waits for
// several things at a time. What happens shows at a descriptor.
//
// Its functions are called by one thread. Everything that waits is bounded.
//
// A store that was opened without a thread gets one when the lock is waited for, or by serve().
// Until then that one thread does it all: a lock that is free and held for a moment is taken and
// given back before another thread would have begun.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/lock/tenure.hpp"
#include "apps/trinco/problem.hpp"
#include "lock/lock_shell.hpp"
#include "net/event_loop.hpp"
#include "store/lock_store.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct contender_news {
    std::optional<std::error_code> answer;  // of the wait: none, or why it ended without the lock
    std::error_code loss;                   // evicted: asked back; lost
};

class contender {
public:
    contender(const store& at, const lock_plan& plan);
    ~contender();
    contender(const contender&) = delete;
    contender& operator=(const contender&) = delete;

    // Opens the session (again, when it was lost), waiting for the store at most as long as
    // opening_time says, and enters the queue, until then at most.
    [[nodiscard]] std::optional<problem> enter(const std::optional<detail::deadline>& by,
                                               bool is_first);

    // Has the store served by a thread of its own from now on: renewals, and news. False: the
    // system has none at the moment.
    [[nodiscard]] bool serve();

    // For a moment in which nobody waits for this thread: what giving back needs is prepared.
    void get_ready() const noexcept;

    // Readable when there are news.
    [[nodiscard]] int descriptor() const noexcept;
    [[nodiscard]] contender_news news();

    // What it has; now, and at any time.
    [[nodiscard]] lock_look look() const;
    [[nodiscard]] std::uint64_t token() const { return lock_->token(); }
    [[nodiscard]] std::string lease() const { return session_->id(); }
    [[nodiscard]] int live_descriptor() const;

    // The entries of the lock's queue, in their order; nullopt when they are not told, and why.
    [[nodiscard]] std::optional<std::vector<detail::entry>> queue(
        std::error_code* why = nullptr) const;
    // By its handle, which in every store begins with the lease and a slash.
    [[nodiscard]] bool is_own(const detail::entry& e) const;

    // Gives back everything, if there is anything, at most in that time. False: no answer by then.
    // What remains ends with this process, or with the TTL.
    [[nodiscard]] bool leave(std::chrono::milliseconds within);
    // After that: whether nothing of it was there any more, by the store's own account. Who holds a
    // lock for a moment is not told by then.
    [[nodiscard]] bool was_gone() const noexcept { return was_gone_; }

private:
    struct bell;

    [[nodiscard]] bool here_until(const std::function<bool()>& done,
                                  std::chrono::milliseconds within) const;

    const store& at_;
    detail::event_loop& on_;
    const lock_plan& plan_;
    std::optional<session> session_;
    bool has_entered_ = false;
    bool was_gone_ = false;
    std::shared_ptr<bell> bell_;  // of this session
    std::shared_ptr<detail::lock_shell> lock_;
};

}  // namespace trinco::program
