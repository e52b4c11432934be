#include "store/redis/redis_route.hpp"

#include <utility>

#include "store/redis/cluster_route.hpp"
#include "store/redis/sentinel_route.hpp"
#include "store/redis/single_route.hpp"

namespace trinco::detail {

std::unique_ptr<redis_route> make_redis_route(loop& on, stream_factory& streams,
                                              redis_target target, redis_route::on_event changed) {
    using kind = redis_target::kind_t;
    auto make = make_single_route;
    if (target.kind == kind::sentinel) make = make_sentinel_route;
    if (target.kind == kind::cluster) make = make_cluster_route;
    return make(on, streams, std::move(target), std::move(changed));
}

}  // namespace trinco::detail
