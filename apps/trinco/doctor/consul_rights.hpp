// Whether Consul lets this token do what locks need, and how long that takes: found out with a
// session, and a lock that nobody else has. Nothing stays.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/servers/consul_talk.hpp"
#include "store/consul/consul_url.hpp"

namespace trinco::program::doctor {

// The names of the locks, as the user gives them, begin with `prefix` in the store of this target.
struct consul_trial {
    const trinco::detail::consul_target& target;
    const std::string& prefix;
    std::string node;  // of the agent, where sessions are made; empty: not known, or several
};

// Adds "token", "rights", "round-trip" and "once"; the least TTL of sessions, when it was found.
[[nodiscard]] std::optional<std::chrono::seconds> try_consul_locks(consul_talk& with,
                                                                   const consul_trial& where,
                                                                   examination& to);

}  // namespace trinco::program::doctor
