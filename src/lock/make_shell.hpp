// What the constructors of all kinds of locks begin with.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lock/lock_shell.hpp"
#include "trinco/session.hpp"

namespace trinco::detail {

// Checks the session, the names and the info; sorts the parts by name. Throws lock_error invalid,
// `kind` is what they are
// called in errors, such as "mutex".
[[nodiscard]] std::shared_ptr<lock_shell> make_shell(session& on, const char* kind,
                                                     std::vector<part> parts, std::string_view info,
                                                     bool bare = false);

}  // namespace trinco::detail
