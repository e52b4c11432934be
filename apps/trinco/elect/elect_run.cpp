#include "apps/trinco/elect/elect_run.hpp"

#include <optional>
#include <string>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/lock/contender.hpp"
#include "apps/trinco/lock/lock_end.hpp"
#include "apps/trinco/lock/lock_hold.hpp"
#include "apps/trinco/lock/lock_wait.hpp"
#include "apps/trinco/start/executables.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "store/open.hpp"

namespace trinco::program {
namespace {

// Nothing: the guardian is gone, and this process can make no other.
std::optional<lock_end> stand_until_ended(const elect_options& options, const lock_plan& plan,
                                          const store& at, guardian& over, signal_desk& desk,
                                          const command_spec& what) {
    contender own(at, plan);
    lock_wait waits(options.as_lock, plan, at, over, desk, own);
    for (;;) {
        if (auto end = waits.acquire()) {
            if (waits.is_guardian_gone()) return std::nullopt;
            return end;
        }
        lock_hold leads(options.as_lock, plan, at, over, desk, own);
        const auto held = leads.run(what, waits.granted());
        // A key of the terminal reaches the command only, and is seen by what it died of.
        const bool wanted = held.command.asked_to_end || held.command.interrupted;
        if (held.is_stopped && !wanted) {
            say(held.loss + "; it stands again");
            if (held.is_guardian_gone) return std::nullopt;
            continue;
        }
        lock_end end;
        end.left = held.left;
        if (held.command.how == command_end::how_t::not_started && held.is_stopped) {
            end.code = complain({exit_lost, held.loss});
            return end;
        }
        if (!held.loss.empty()) say(held.loss);
        end.command = held.command;
        return end;
    }
}

// The guardian was killed: by this process because it slept through the end of the lead, as after a
// pause of the whole machine, or by somebody while there was no command. A process with threads
// cannot fork another one; a new program has none. What was held is given back.
lock_end begin_anew(const elect_options& options, const store& at) {
    if (is_read_once(options.as_lock.where)) {
        return ended_with(complain(
            {exit_lost,
             "the guardian of the command was killed, and the configuration, which is no plain "
             "file, cannot be read once more to begin anew; start it again"}));
    }
    detail::store_access::state(at)->locks()->before_exit();
    return ended_with(complain(go_on_anew()));
}

}  // namespace

void run_while_leading(const elect_options& options, const lock_plan& plan, const store& at,
                       guardian over, signal_desk& desk, const command_spec& what) {
    auto end = stand_until_ended(options, plan, at, over, desk, what);
    if (!end) end = begin_anew(options, at);
    end_program(*end, at, std::move(over), what);
}

}  // namespace trinco::program
