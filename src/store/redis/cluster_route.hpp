// The way to the nodes of a cluster. See redis_route.hpp for what it promises.
//
// Slots        CLUSTER SLOTS, asked of any node that answers, says which node owns which slot. It
//              is asked again when there is a reason: a node is gone or mistrusted, a redirection
//              came, a slot has no owner; many reasons of one moment are one question, and between
//              two of them is half a second.
// Nodes        One connection to each node that is asked something, made when it is, closed after a
//              minute without requests; at most 64 where that does not cut requests off. The run id
//              of a node is remembered beyond that, so that one that was restarted meanwhile is
//              known to be another server (for 1024 addresses at least).
// Redirections MOVED is learnt and followed, ASK followed once (ASKING and the request go out
//              together), TRYAGAIN repeated after a short random wait. What was sent and is not
//              answered is not repeated; what was not sent yet when a connection ends is sent to
//              whoever owns the slot then.
// The channel  is heard at a node that owns slots, and at another one when it is gone or owns none
//              any more: nodes pass on to each other what is published.
// Rights       The user needs +cluster|slots; without it, and without a map from before, everything
//              is denied with a sentence that says so. Without +asking, requests for a slot that
//              is being moved fail until it has moved.
#pragma once

#include <memory>

#include "store/redis/redis_route.hpp"

namespace trinco::detail {

[[nodiscard]] std::unique_ptr<redis_route> make_cluster_route(loop& on, stream_factory& streams,
                                                              redis_target target,
                                                              redis_route::on_event changed);

}  // namespace trinco::detail
