// The rpc of etcd_rpc.hpp over a transport: requests, renewals and watches that share one way to
// the members and one login.
#pragma once

#include <memory>
#include <string>

#include "store/etcd/etcd_rpc.hpp"
#include "store/etcd/etcd_transport.hpp"

namespace trinco::detail::etcd {

struct credentials {
    std::string user = {};  // empty: nobody logs in
    std::string password = {};
};

// The loop must outlive it. Begins to connect when something is asked for.
[[nodiscard]] std::unique_ptr<rpc> make_etcd_client(loop& on, std::unique_ptr<transport> by,
                                                    credentials who);

}  // namespace trinco::detail::etcd
