// The servers that trinco-fleet has as stores; each needs the library of its driver.
#pragma once

#include "apps/trinco/stores/server_stores.hpp"

namespace trinco::program {

// redis: and its kin: breakers.
[[nodiscard]] server_store redis_server();
// etcd: and etcds: locks.
[[nodiscard]] server_store etcd_server();
// consul: and consuls: locks.
[[nodiscard]] server_store consul_server();

}  // namespace trinco::program
