// The descriptors 0, 1 and 2, with which a program may be started closed (`<&- >&- 2>&-`).
#pragma once

namespace trinco::program {

// Puts something into the place of those that are closed, so that no socket or file of ours gets
// their numbers, into which messages would be written. Reading and writing fail as before, and a
// command that is started finds them closed as before. First thing in main.
void occupy_standard_descriptors() noexcept;

}  // namespace trinco::program
