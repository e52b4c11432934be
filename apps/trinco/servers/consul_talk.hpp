// A conversation with Consul, for a command that waits; see rpc_talk.hpp.
#pragma once

#include <string>
#include <system_error>

#include "apps/trinco/servers/rpc_talk.hpp"
#include "store/consul/consul_client.hpp"
#include "store/consul/consul_rpc.hpp"

namespace trinco::program {

template <class T>
using consul_told = rpc_told<T>;

class consul_talk : public rpc_talk<detail::consul::rpc> {
public:
    explicit consul_talk(detail::consul::consul_settings to);

    // Why something was told this error; its own message where nothing more is known.
    [[nodiscard]] std::string why(const std::error_code& told);
};

}  // namespace trinco::program
