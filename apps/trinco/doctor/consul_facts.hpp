// What addresses of Consul say about themselves, and what that means for locks. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/doctor/finding.hpp"
#include "store/consul/consul_messages.hpp"

namespace trinco::program::doctor {

using consul_status = trinco::detail::consul::server_status;

// Each adds what it can tell, or nothing. `asked`: one for each address of the URL.

// "connect": those that did not answer. Bad when none did, or none was heard of.
void judge_consul_reach(const std::vector<consul_status>& asked, examination& to);
// "leader": who it is, and whether all say the same.
void judge_consul_leader(const std::vector<consul_status>& asked, examination& to);
// "servers": how many there are, how many may be lost, and whether all are of one cluster.
void judge_servers(const std::vector<consul_status>& asked, examination& to);
// "datacenter": whose locks they are. `wanted`: that of the URL, or empty.
void judge_datacenter(const std::vector<consul_status>& asked, const std::string& wanted,
                      examination& to);
void judge_consul_version(const std::vector<consul_status>& asked, examination& to);
// "agent": on which node sessions hang, and what ends it.
void judge_agents(const std::vector<consul_status>& asked, examination& to);
// "connections": how many an agent takes.
void judge_connections(const std::vector<consul_status>& asked, examination& to);

// The least TTL of a session, by the words with which one of a shorter was refused.
[[nodiscard]] std::optional<std::chrono::seconds> least_ttl_in(std::string_view refusal);
// "ttl": what is the least; `asked`: what locks ask for.
void judge_session_ttl(std::chrono::seconds least, std::chrono::seconds asked, examination& to);
// "lock-delay": how long the lock of who was lost is kept from others.
void judge_lock_delay(examination& to);
// "outage": how long the servers may be away without harm to a command.
void judge_consul_outage(const std::vector<consul_status>& asked, std::chrono::seconds least,
                         examination& to);

}  // namespace trinco::program::doctor
