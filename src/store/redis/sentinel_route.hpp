// The way to the primary that Sentinels name. See redis_route.hpp for what it promises.
//
// Which one    Each attempt to connect asks the Sentinels first (sentinel_seeker.hpp), and a server
//              that does not say by ROLE that it is a primary is not connected to. The address is
//              taken as it is announced.
// Fail-over    A Sentinel's word that another server has become the primary is followed at once;
//              whenever that word may have been missed, the Sentinels are asked, and a connection
//              to another server than they name is given up. That takes the word of two of them,
//              or of the only one that answers: one that was cut off from the others does not draw
//              us back to a primary of the past. As long as two contradict each other we stay, and
//              ask again every 3 s.
// The channel  is heard at the same server: what a primary publishes, no other server may hear.
#pragma once

#include <memory>

#include "store/redis/redis_route.hpp"

namespace trinco::detail {

[[nodiscard]] std::unique_ptr<redis_route> make_sentinel_route(loop& on, stream_factory& streams,
                                                               redis_target target,
                                                               redis_route::on_event changed);

}  // namespace trinco::detail
