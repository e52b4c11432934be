// Examines a Consul that keeps locks.
#pragma once

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/doctor/finding.hpp"

namespace trinco::program::doctor {

// In this order, as far as it gets: the URL, the way to each address, TLS, leader and servers,
// datacenter, version, what ends the agent's sessions, its connections; then, with a session and a
// lock that nobody uses: rights, round trips, least TTL; and what follows for jobs.
void examine_consul(const settings& with, examination& to);

}  // namespace trinco::program::doctor
