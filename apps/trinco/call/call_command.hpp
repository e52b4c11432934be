// `trinco call`: a command behind a circuit breaker that all processes of the store share.
//
//     trinco call payments --timeout 2s -- curl -fsS https://payments.example/charge
//
// Refused      The command does not run. Exit 75 and one line on stderr: which breaker, who refused
//              and why, when to try again. With --fallback another command runs instead, and its
//              exit code is ours; then nothing is said.
// Admitted     The command runs as it would alone; how it ended is counted as verdicts.hpp says.
//              What ran out of its --timeout counts at that moment, not when it is gone.
// Interrupted  while the store is asked: the command does not begin.
// No store     A server that cannot be asked: the machine's mirror decides (one_call.hpp). Without
//              one the command runs all the same, and stderr says so: what protects must not be
//              the outage. --on-no-store refuse turns both round (69, or 77 for rights): who says
//              so wants no call of which the fleet's store knows nothing. The same for what the
//              machine lacks, a folder say. Only a URL that is wrong wherever it is used is a
//              mistake in any case: 64.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_call_command();

}  // namespace trinco::program
