// Examines a Redis as a store of breakers: the way to it, step by step, and what it is like.
#pragma once

#include <string>
#include <string_view>

#include "apps/trinco/doctor/finding.hpp"

namespace trinco::program::doctor {

// Whose breakers are meant, and how a command line names their store: " --breakers URL".
struct named_breakers {
    std::string name_space;
    std::string words;
};

// What a URL of Redis leads to: a server, the primary that Sentinels name, the nodes of a cluster.
// Ends with the first step that fails; takes at most some ten seconds. Nothing stays changed there.
// The URL's password is shown nowhere.
void examine_redis(std::string_view url, const named_breakers& of, examination& to);

}  // namespace trinco::program::doctor
