// `trinco lock NAME -- COMMAND`: runs a command while it holds a lock.
//
//     trinco lock nightly --wait 30s -- backup /srv
//
// In this order, each step needing the one before: signals are taken over, so that none is missed
// that a command should get; what was asked for is checked; the guardian is forked, while there is
// neither thread nor store; the store is opened, the lock waited for, the command run under the
// guardian, the lock given back. See lock_run.hpp, process/guardian.hpp, process/supervise.hpp.
//
// The command's environment: TRINCO_LOCK, TRINCO_LEASE, and TRINCO_TOKEN for an exclusive lock.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_lock_command();

}  // namespace trinco::program
