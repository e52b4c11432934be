// `trinco locks`: who holds which lock and who waits for it, and taking one back from its holder.
//
//   ls [NAME|PREFIX*]     one row a lock; with --for, how much it is used
//   show NAME             its holders, and who waits, in the order of the queue
//   watch [NAME|PREFIX*]  a line a change, until INT or until nobody reads any more. Reads the
//                         store again and again, and at once when the holder of the named lock
//                         changes: what comes and goes in between is not seen. A store that
//                         does not answer does not end it once it has answered: that is told, and
//                         that it is back
//   break NAME            asks the holders to give it back, waits until they have or their TTL is
//                         over, and then deletes what is left. `trinco lock` ends its command and
//                         gives back; a program of the library is told by on_loss. A holder that is
//                         deleted may still work: what its lock protects should check the token
//
// Names are those that `trinco lock` takes: without the prefix of the settings. What ends in '*' or
// '/' is the beginning of names.
//
// break confirms, by how much may go wrong: at a terminal a plain one asks y/N, and one with
// --force, which leaves the holder no time, asks for the lock's name. --confirm NAME answers both
// beforehand, and is needed where nobody can be asked. What it did goes to standard output.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_locks_ls();
[[nodiscard]] std::unique_ptr<command> make_locks_show();
[[nodiscard]] std::unique_ptr<command> make_locks_watch();
[[nodiscard]] std::unique_ptr<command> make_locks_break();

}  // namespace trinco::program
