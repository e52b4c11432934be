// The way to one server: a connection for commands and, once somebody listens, another one for the
// channel. See redis_route.hpp for what both promise.
//
// A server that is mistrusted is connected to anew: there is no other one, but another life of it
// may answer, and a proxy in front of it may have chosen another. That makes the outcome of all
// that is under way unknown, so it happens once in 50 ms at most, then in 100 ms ... 1 s, until
// nothing was wrong for 10 s; and not at all where only time helps.
#pragma once

#include <memory>

#include "store/redis/redis_route.hpp"

namespace trinco::detail {

[[nodiscard]] std::unique_ptr<redis_route> make_single_route(loop& on, stream_factory& streams,
                                                             redis_target target,
                                                             redis_route::on_event changed);

}  // namespace trinco::detail
