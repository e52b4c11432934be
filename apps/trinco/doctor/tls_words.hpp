// Whether what travels to a store of servers can be read or changed on the way. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/trinco/doctor/finding.hpp"
#include "net/stream_address.hpp"
#include "net/tls_settings.hpp"

namespace trinco::program::doctor {

// What is secret on the way, if anything is, and how to hide it.
struct secret_on_the_way {
    std::string what = {};  // "the password ..."
    std::string advice = {};
};

// "tls": whom is believed; or that a secret goes in the clear, unless it stays on this machine.
void judge_tls(const std::optional<trinco::detail::tls_settings>& tls,
               const std::vector<trinco::detail::stream_address>& addresses,
               const std::optional<secret_on_the_way>& secret, examination& to);

}  // namespace trinco::program::doctor
