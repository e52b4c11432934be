// `trinco breakers`: looking at circuit breakers, and an operator's hand on them.
//
//   ls [NAME|PREFIX*]...   a row a breaker
//   show NAME              everything about one: window, totals, options, instances
//   watch [NAME|PREFIX*]   a line a change, until INT, TERM or nobody reads any more
//   trip NAME              opens it now; recovers as usual
//   reset NAME             closes it now, with an empty window
//   force-open NAME        refuses every call, for --for (24 h)
//   disable NAME           lets every call through
//   observe NAME           decides, but refuses nothing
//   resume NAME            takes the override away
//   set NAME KEY=VALUE...  options at run time, above what processes are configured with
//   unset NAME             takes these away
//   forget NAME            begins it anew, as if it had never been used; asks before, unless
//                          --confirm repeats the name
//
// Whoever changes a state or an override is written down with it: user@host, and --reason, one line
// of at most 200 bytes. set and unset have no --reason: a record keeps of options what governs, and
// nobody's name; the next process that brings its own would blot out both. The answer is the state
// afterwards, and says when there was nothing to resume, to unset or to forget.
//
// A name that the store does not have is a mistake (64), so that a slip of the hand during an
// incident does not look like success; --create says that it is meant.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program {

[[nodiscard]] std::unique_ptr<command> make_breakers_ls();
[[nodiscard]] std::unique_ptr<command> make_breakers_show();
[[nodiscard]] std::unique_ptr<command> make_breakers_watch();
[[nodiscard]] std::unique_ptr<command> make_breakers_trip();
[[nodiscard]] std::unique_ptr<command> make_breakers_reset();
[[nodiscard]] std::unique_ptr<command> make_breakers_force_open();
[[nodiscard]] std::unique_ptr<command> make_breakers_disable();
[[nodiscard]] std::unique_ptr<command> make_breakers_observe();
[[nodiscard]] std::unique_ptr<command> make_breakers_resume();
[[nodiscard]] std::unique_ptr<command> make_breakers_set();
[[nodiscard]] std::unique_ptr<command> make_breakers_unset();
[[nodiscard]] std::unique_ptr<command> make_breakers_forget();

}  // namespace trinco::program
