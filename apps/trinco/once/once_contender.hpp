// A session and one caller's part in a key, as a program waits for them: with a descriptor that can
// be polled beside signals.
//
// From the main thread, which is not the library's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "apps/trinco/lock/tenure.hpp"
#include "apps/trinco/once/once_options.hpp"
#include "apps/trinco/problem.hpp"
#include "lock/once_run.hpp"
#include "lock/session_shell.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class once_contender {
public:
    once_contender(const store& at, const once_plan& plan);
    ~once_contender();
    once_contender(const once_contender&) = delete;
    once_contender& operator=(const once_contender&) = delete;

    // Opens a session, waiting for the store as long as opening_time says, and begins; also anew,
    // when it was lost. The problem: it cannot be opened.
    [[nodiscard]] std::optional<problem> enter();
    // Whether the time for waiting is over.
    [[nodiscard]] bool is_late() const { return by_ && detail::boot_clock::now() >= *by_; }
    // Readable when there is news.
    [[nodiscard]] int descriptor() const noexcept;
    struct news {
        std::optional<std::error_code> answer;  // to what was begun
        detail::once_turn turn;                 // when it is no error
        std::optional<std::error_code> loss;    // of the lock, while it runs
    };
    [[nodiscard]] news take();

    [[nodiscard]] lock_look look() const;
    [[nodiscard]] bool session_is_lost() const { return session_->state() == session_state::lost; }
    [[nodiscard]] std::string lease() const { return session_->id(); }
    [[nodiscard]] int live_descriptor() const;
    // Writes how it ended; waits for that.
    [[nodiscard]] std::error_code finish(detail::once_record::state_t how, std::string payload,
                                         std::chrono::milliseconds within);
    // Ends what was begun before its answer came: as if it had never been, also when it was just
    // being recorded as running. Then leaves; `within` holds where there is nothing to take back.
    void withdraw(std::chrono::milliseconds within);
    // Ends the session. Whether the store has taken everything back.
    bool leave(std::chrono::milliseconds within);

private:
    struct bell;

    const store& at_;
    const once_plan& plan_;
    std::optional<detail::deadline> by_;
    std::shared_ptr<bell> bell_;
    std::shared_ptr<std::unique_ptr<detail::once_run>> run_;  // the loop's thread alone
    std::optional<session> session_;
    bool has_entered_ = false;
};

}  // namespace trinco::program
