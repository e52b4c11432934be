// `trinco records`: what `once` has recorded, and saying what became of a run that was interrupted.
//
//   ls [KEY|PREFIX*]   one row a key
//   show KEY           all that is recorded, and the result
//   resolve KEY        for an interrupted one, whose owner is gone: it was done (with its result),
//                      it failed, or it was not done, so that the next caller runs it again under
//                      the same run id
//
// A record says "running" until its owner writes how it ended. Whether the owner still lives is
// what the lock of the key tells; a running record whose lock nobody holds is "interrupted".
//
// Keys are those that `trinco once` takes: without the prefix of the settings. What ends in '*' or
// '/' is the beginning of keys.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_records_ls();
[[nodiscard]] std::unique_ptr<command> make_records_show();
[[nodiscard]] std::unique_ptr<command> make_records_resolve();

}  // namespace trinco::program
