// The instances of a breaker in words: what each contributes, when it was last heard, and whether
// it is configured like the others.
//
// A store knows of an instance's own options only when it was first told their text: of two with
// the same stamp they are the same. Those of the greatest stamp are the latest; an instance with
// another one was configured with others, or with the same before somebody else changed them.
#pragma once

#include <cstdint>
#include <string>

#include "apps/trinco/output/json.hpp"
#include "core/breaker/messages.hpp"

namespace trinco::program {

// The greatest stamp of the options of its instances; 0: none has any.
[[nodiscard]] std::uint64_t latest_options(const detail::report& r) noexcept;

// "set by an operator", "of web-1:7:ab and 3 more, since 12 min", "of a process that is gone".
[[nodiscard]] std::string whose_options(const detail::report& r);

// A table of all, those first who have counted something of late. Empty when there are none.
[[nodiscard]] std::string instances_text(const detail::report& r);

// instance, voter, heard_ms, window, options ("latest", "other" or null: it has none of its own).
[[nodiscard]] json_object json_of(const detail::share& s, std::uint64_t latest);

}  // namespace trinco::program
