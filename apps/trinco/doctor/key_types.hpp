// What lies under the keys of breakers: a key of another type, which somebody else wrote there,
// makes its breaker useless for the fleet, and one under the index hides all names from who lists
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/doctor/server_talk.hpp"
#include "store/redis/redis_url.hpp"

namespace trinco::program::doctor {

// A key as breakers use it.
struct expected_key {
    std::string_view type;     // "hash", "zset"
    std::string_view breaker;  // empty: the index
};
// Nothing when it is none of the namespace's. Pure.
[[nodiscard]] std::optional<expected_key> expected_at(std::string_view key,
                                                      std::string_view name_space);

// How the server is reached, for the lines that are to be pasted.
struct examined_server {
    const trinco::detail::redis_target& target;
    const trinco::detail::stream_address& where;
    std::string_view words;  // how a command names the store: " --breakers URL"
};

// Adds "keys". Looks at the keys of the first 1,000 names of the index, and of those that a search
// through the server's keys finds (SCAN, where the user may) within a second; says when that was
// not all. In a cluster: at those of this node. Reads only.
void check_key_types(server_talk& with, const examined_server& server, std::string_view name_space,
                     examination& to);

}  // namespace trinco::program::doctor
