// Examines a file of local: as a store of breakers and locks. Makes no file that is not there.
#pragma once

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/stores/open_store.hpp"

namespace trinco::program::doctor {

// Adds "file", "rights", "file-system", "space" and "answer".
void examine_local(const settings& with, needs what, examination& to);

}  // namespace trinco::program::doctor
