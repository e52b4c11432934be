// `trinco elect NAME --observe`: who leads, a line a change, also that nobody does, and that it is
// not known because the store does not answer.
#pragma once

#include <string>

#include "apps/trinco/config/settings.hpp"

namespace trinco::program {

// Until a signal, or until nobody reads standard output any more; the exit code. `name` with the
// prefix of the settings; `format`: table, json or name (the value alone, an empty line for none).
[[nodiscard]] int observe_election(const settings& with, const std::string& name,
                                   const std::string& format);

}  // namespace trinco::program
