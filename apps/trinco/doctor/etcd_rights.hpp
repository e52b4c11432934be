// Whether etcd lets this user do what locks need, and how long that takes: found out by taking and
// giving back the lock "trinco-doctor", which nobody else uses. Nothing stays.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/servers/etcd_talk.hpp"
#include "store/etcd/etcd_url.hpp"

namespace trinco::program::doctor {

// The names of the locks, as the user gives them, begin with `prefix` in the store of this target.
struct etcd_trial {
    const trinco::detail::etcd_target& target;
    const std::string& prefix;
};

// Adds "lease", "rights", "round-trip" and "once"; the least TTL that was granted, when one was.
[[nodiscard]] std::optional<std::chrono::seconds> try_locks(etcd_talk& with,
                                                            const etcd_trial& where,
                                                            examination& to);

}  // namespace trinco::program::doctor
