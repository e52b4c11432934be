// What the demonstration leaves in an etcd.
#pragma once

#include "apps/trinco/demo/shared_store.hpp"

namespace trinco::program::demo {

// Ends the leases of its processes, which were killed, and removes all keys under its prefix,
// within some seconds; and those of demonstrations that were killed an hour ago or earlier. False:
// not all of its own are gone.
[[nodiscard]] bool remove_etcd_keys(const shared_store& from);

}  // namespace trinco::program::demo
