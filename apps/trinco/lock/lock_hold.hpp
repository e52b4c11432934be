// A command under a lock that was granted: from its start until the lock is given back.
#pragma once

#include <string>
#include <system_error>

#include "apps/trinco/lock/contender.hpp"
#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/lock/lock_voice.hpp"
#include "apps/trinco/lock/renewal_notice.hpp"
#include "apps/trinco/lock/tenure.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "core/loop.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct hold_end {
    command_end command;
    // Of the lock: how it was lost, was about to be lost, or was given back because somebody asked.
    // One sentence; empty when it was held until the command had ended.
    std::string loss;
    bool is_stopped = false;        // the command, or it was not begun, because of that
    bool is_guardian_gone = false;  // and with it whatever ran
    bool left = true;               // the store has taken everything back
};

class lock_hold {
public:
    lock_hold(const lock_options& options, const lock_plan& plan, const store& at, guardian& over,
              signal_desk& desk, contender& own);

    // Once. `granted`: since when it is held.
    [[nodiscard]] hold_end run(command_spec what, detail::boot_clock::time_point granted);

private:
    void complete(command_spec& what);
    supervision manners();
    deadlines until();
    void tell_of(const guardian_event& e);
    bool give_back(bool held);
    void tell_how_long(detail::boot_clock::time_point granted, detail::boot_clock::time_point done,
                       bool left) const;
    [[nodiscard]] std::string loss_of(const command_end& end, const std::string& evicted) const;
    // Why it was lost, where that is known; begins with "; ".
    [[nodiscard]] std::string loss_words() const;
    [[nodiscard]] bool is_store_gone() const;

    const lock_plan& plan_;
    const store& at_;
    guardian& over_;
    signal_desk& desk_;
    contender& own_;
    const lock_voice voice_;
    tenure keeps_;
    renewal_notice notice_;
    std::error_code loss_;
    bool is_guardian_gone_ = false;
    bool found_gone_ = false;  // when it was given back, and not before
    detail::boot_clock::time_point serve_at_{};
};

}  // namespace trinco::program
