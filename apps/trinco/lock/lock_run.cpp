#include "apps/trinco/lock/lock_run.hpp"

#include <utility>

#include "apps/trinco/lock/contender.hpp"
#include "apps/trinco/lock/lock_end.hpp"
#include "apps/trinco/lock/lock_hold.hpp"
#include "apps/trinco/lock/lock_wait.hpp"

namespace trinco::program {
namespace {

lock_end run(const lock_options& options, const lock_plan& plan, const store& at, guardian& over,
             signal_desk& desk, const command_spec& what) {
    contender own(at, plan);
    lock_wait waits(options, plan, at, over, desk, own);
    if (auto end = waits.acquire()) return *std::move(end);
    lock_hold holds(options, plan, at, over, desk, own);
    const auto held = holds.run(what, waits.granted());
    lock_end end;
    end.left = held.left;
    if (held.loss.empty()) {
        end.command = held.command;
    } else {
        end.code = complain({static_cast<int>(options.code_lost), held.loss});
    }
    return end;
}

}  // namespace

void run_under_lock(const lock_options& options, const lock_plan& plan, const store& at,
                    guardian over, signal_desk& desk, const command_spec& what) {
    const auto end = run(options, plan, at, over, desk, what);
    end_program(end, at, std::move(over), what);
}

}  // namespace trinco::program
