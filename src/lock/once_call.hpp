// The blocking outside of a once_run: one caller's thread, and the machine on the loop's.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

#include "lock/once_run.hpp"
#include "lock/session_shell.hpp"

namespace trinco::detail {

class once_call : public std::enable_shared_from_this<once_call> {
public:
    once_call(std::shared_ptr<session_shell> session, once_settings settings);
    // Not before end(), but where the loop has stopped.
    ~once_call();
    once_call(const once_call&) = delete;
    once_call& operator=(const once_call&) = delete;

    struct answer {
        std::error_code error;
        once_turn turn;
    };
    // Each waits for its answer; see once_run. A stop request ends begin with canceled.
    [[nodiscard]] answer begin(const std::stop_token& stop);
    [[nodiscard]] answer settle(std::optional<std::string> result);
    [[nodiscard]] std::error_code finish(bool failed, std::string payload,
                                         std::chrono::milliseconds within);
    // Gives up whatever is left, without waiting.
    void end();
    // Requested when the lock is lost while it runs.
    [[nodiscard]] std::stop_token lost() const { return lost_.get_token(); }

private:
    struct waiting {
        awaited told;
        once_turn turn;  // written before `told` is set
    };
    [[nodiscard]] answer wait_for(const std::shared_ptr<waiting>& w) const;

    const std::shared_ptr<session_shell> session_;
    std::stop_source lost_;
    std::unique_ptr<once_run> run_;  // the loop's thread alone
};

}  // namespace trinco::detail
