// `trinco elect NAME -- COMMAND`: runs a command while it leads.
//
//     trinco elect scheduler --value 10.0.0.7:8080 -- scheduler
//     trinco elect scheduler --observe
//
// A leader is the holder of a lock that has a value, so it is `trinco lock` in all that is not said
// here: guardian, signals, terminal, exit codes, environment of the command. It does not end with
// the lead: the command is stopped before another one can lead, and the program stands again, at
// the end of the queue, until the command ends by itself or somebody ends both (INT, TERM, QUIT).
//
// The guardian, which is forked before there is a thread, is made for several commands, and the
// store stays open. Why: docs/decisions/0031-a-guardian-for-several-commands.md.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_elect_command();

}  // namespace trinco::program
