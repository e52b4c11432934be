// What the members of an etcd say about themselves, and what that means for locks. Pure.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/doctor/finding.hpp"
#include "store/etcd/etcd_messages.hpp"

namespace trinco::program::doctor {

using etcd_status = trinco::detail::etcd::server_status;
using etcd_member = trinco::detail::etcd::member;

// Whether it has answered; otherwise its errors say why not.
[[nodiscard]] bool has_answered(const etcd_status& one) noexcept;

// Each adds what it can tell, or nothing. `asked`: one for each endpoint of the URL.

// "connect": those that did not answer. Bad when none did, or none was heard of.
void judge_reach(const std::vector<etcd_status>& asked, examination& to);
// "members": how many there are, how many may be lost, and whether the URL names all of them, each
// once, and none of another cluster. `told`: whom each of those asked lists; empty where it is not
// known.
void judge_members(const std::vector<etcd_status>& asked,
                   const std::vector<std::vector<etcd_member>>& told, examination& to);
// "leader": who it is, and whether all say the same. `all` is empty when it is not known, here and
// below.
void judge_leader(const std::vector<etcd_status>& asked, const std::vector<etcd_member>& all,
                  examination& to);
// "version": and what is known to be wrong with it where it matters to locks.
void judge_etcd_version(const std::vector<etcd_status>& asked, const std::vector<etcd_member>& all,
                        examination& to);
// "space": sizes, and what raised an alarm.
void judge_space(const std::vector<etcd_status>& asked, examination& to);

// "ttl": what was granted when a second was asked for; `ours`: what locks ask for.
void judge_least_ttl(std::chrono::seconds granted, std::chrono::seconds ours, examination& to);
// "outage": how long the store may be away without harm to a command.
void judge_outage(std::chrono::seconds least_ttl, examination& to);

}  // namespace trinco::program::doctor
