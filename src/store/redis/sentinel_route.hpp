// The way to the primary that Sentinels name. See redis_route.hpp for what it promises.
//
// Which one    Each attempt to connect asks the Sentinels first (sentinel_seeker.hpp), and a server
//              that does not say by ROLE that it is a primary is not connected to. The address is
//              taken as it is announced.
// Fail-over    A Sentinel's word that another server has become the primary is followed at once;
//              whenever that word may have been missed, two Sentinels are asked, and a connection
//              to another server than both name is given up; where only one answers, its word is
//              enough. One that was cut off from the others neither draws us back to a primary of
//              the past nor keeps us there. As long as two contradict each other we stay, and ask
//              again every 3 s.
// Returns      A primary that was restarted at its address (another run id, or one that may not be
//              asked for) is followed again when all Sentinels together have nothing against it
//              (sentinel_jury.hpp): they may be replacing it, and what it is told would be lost.
//              Without +sentinel|master they say nothing. After 10 s it is followed all the same.
// The channel  is heard at the same server: what a primary publishes, no other server may hear.
#pragma once

#include <memory>

#include "store/redis/redis_route.hpp"

namespace trinco::detail {

[[nodiscard]] std::unique_ptr<redis_route> make_sentinel_route(loop& on, stream_factory& streams,
                                                               redis_target target,
                                                               redis_route::on_event changed);

}  // namespace trinco::detail
