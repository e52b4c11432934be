// Examines a cluster of etcd that keeps locks.
#pragma once

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/doctor/finding.hpp"

namespace trinco::program::doctor {

// In this order, as far as it gets: the URL, the way to each member, TLS and login, members and
// leader, version, space and alarms; then, by taking a lock that nobody uses: rights, round trips,
// least TTL; and what follows for jobs.
void examine_etcd(const settings& with, examination& to);

}  // namespace trinco::program::doctor
