// A record as lines of text, from C++ and from the database, to compare the two. What differs in
// form only does not show: windows are brought up to date, and their empty cells are left out.
#pragma once

#include <string>

#include "core/breaker/record.hpp"

namespace trinco::detail::test {

[[nodiscard]] std::string text_of(fleet_record r);

// A script that answers the same of a record in the database. It goes on where inspect's pieces
// end, so it reads the layout as the product does.
[[nodiscard]] std::string text_script();

}  // namespace trinco::detail::test
