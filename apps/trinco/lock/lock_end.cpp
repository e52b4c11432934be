#include "apps/trinco/lock/lock_end.hpp"

#include <cstdlib>
#include <utility>

#include "apps/trinco/lock/ending_signals.hpp"
#include "store/open.hpp"

namespace trinco::program {

lock_end ended_with(int code) {
    lock_end end;
    end.code = code;
    return end;
}

void end_program(const lock_end& end, const store& at, guardian over, const command_spec& what) {
    // The store has taken everything back, or does not answer. Either way threads, memory and
    // descriptors go with the process, faster than one by one; nothing of them is to be flushed.
    if (end.left) detail::store_access::state(at)->locks()->before_exit();
    // Not so the guardian: no process of ours is left for somebody else to reap.
    { const guardian last = std::move(over); }
    if (end.command) std::_Exit(finish(*end.command, what));
    // As the user's key would have ended it, so that a shell script around it ends, too.
    if (end.by_key) die_of(end.interrupted);
    std::_Exit(end.code);
}

}  // namespace trinco::program
