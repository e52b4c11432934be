// Examines what stands in for a server of breakers on this machine (mirror/server_mirror.hpp).
#pragma once

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/doctor/finding.hpp"

namespace trinco::program::doctor {

// Adds "mirror" when it cannot be used, as a warning: the breakers are well without it while the
// server answers. Makes no file.
void examine_mirror(const settings& with, examination& to);

}  // namespace trinco::program::doctor
