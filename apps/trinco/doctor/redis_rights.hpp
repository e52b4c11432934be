// Whether a user of Redis may do what breakers need: asked with ACL DRYRUN (Redis 7, Valkey), which
// changes nothing; of older servers, and where that may not be asked either, found out by trying.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/doctor/server_talk.hpp"

namespace trinco::program::doctor {

// What the server is part of: nodes of a cluster are asked where which breakers are.
enum class server_kind : std::uint8_t { alone, node };

// Keys go by the namespace alone, channels by the database, too.
struct breaker_space {
    std::string_view name;
    unsigned database = 0;
};

// The rule that gives a user all of it, in each database: "+eval ... ~trinco:1:shop:* &trinco:...".
[[nodiscard]] std::string acl_rule_for(std::string_view name_space, server_kind of);

// Adds "rights" and "channel". Scripts are tried elsewhere. `listening`: for SUBSCRIBE, since
// nothing else can be asked there afterwards. `login_user`: who that is when he may not ask; empty:
// the default.
void check_rights(server_talk& asking, server_talk& listening, const std::string& login_user,
                  const breaker_space& space, server_kind of, examination& to);

// Adds "rights": the node does not let this user ask for the map of the cluster.
void say_map_is_denied(server_talk& asking, std::string_view name_space, examination& to);

}  // namespace trinco::program::doctor
