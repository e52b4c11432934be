// Waiting in the queue of a lock, until it is had, cannot be had, or somebody wants an end. Tells
// the user what is waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/trinco/lock/contender.hpp"
#include "apps/trinco/lock/lock_end.hpp"
#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/lock/lock_voice.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "core/loop.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class lock_wait {
public:
    // `over`: of the command that is to come. A candidate without a terminal goes on when it is
    // told to hang up: that is how a service is told to read its configuration.
    lock_wait(const lock_options& options, const lock_plan& plan, const store& at, guardian& over,
              signal_desk& desk, contender& own);

    // Nothing: it has the lock. Again and again, each time for as long as the plan says. A store
    // that does not answer ends it; a candidate that has stood once waits for the store, too,
    // unless it waits for nothing.
    [[nodiscard]] std::optional<lock_end> acquire();
    // Ended by that. What it had in the queue has been given back, as far as the store answers.
    [[nodiscard]] bool is_guardian_gone() const noexcept { return is_guardian_gone_; }
    [[nodiscard]] detail::boot_clock::time_point granted() const noexcept { return granted_; }

private:
    enum class step : std::uint8_t { waits, granted, again, ended };
    using deadline = std::optional<detail::deadline>;

    std::optional<lock_end> enter(const deadline& by, bool is_first);
    [[nodiscard]] bool waits_for_store(const problem& bad, const deadline& by) const;
    step rest(const deadline& by);
    step wait();
    step look_for_answer();
    step look_for_signal();
    step look_for_guardian();
    lock_end interrupted(int number);
    int not_acquired(const std::error_code& error);
    [[nodiscard]] int until_report() const;
    [[nodiscard]] detail::boot_clock::time_point next_report() const;
    void report();
    [[nodiscard]] std::string place(const std::vector<detail::entry>& queue) const;
    [[nodiscard]] std::string store_silence() const;
    void report_place(const std::optional<std::vector<detail::entry>>& queue,
                      const std::error_code& why);
    void warn_of_itself(const std::vector<detail::entry>& queue);
    void report_granted() const;
    [[nodiscard]] bool is_store_gone() const;

    const lock_options& options_;
    const lock_plan& plan_;
    const store& at_;
    guardian& over_;
    signal_desk& desk_;
    contender& own_;
    const lock_voice voice_;
    const bool ends_at_hang_up_;
    bool is_guardian_gone_ = false;
    bool has_entered_ = false;      // once, at least
    bool is_store_silent_ = false;  // when it was asked last, at the end
    detail::boot_clock::time_point began_{};
    detail::boot_clock::time_point granted_{};
    detail::boot_clock::time_point next_report_{};
    std::string outer_lease_;  // of a lock of the same name that this program runs under
    std::string reported_;
    lock_end end_;  // without the lock
};

}  // namespace trinco::program
