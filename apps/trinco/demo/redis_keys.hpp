// What the demonstration leaves in a Redis.
#pragma once

#include "apps/trinco/demo/shared_store.hpp"

namespace trinco::program::demo {

// Removes it, within some seconds. False: not all of it.
[[nodiscard]] bool remove_redis_keys(const shared_store& from);

}  // namespace trinco::program::demo
