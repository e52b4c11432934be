#include "apps/trinco/demo/redis_keys.hpp"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/demo/gateway_caller.hpp"
#include "apps/trinco/servers/redis_door.hpp"
#include "store/redis/redis_url.hpp"
#include "store/redis/script_protocol.hpp"

namespace trinco::program::demo {
namespace {

// All in one slot.
bool remove(redis_door& at, const std::vector<std::string>& keys) {
    std::vector<std::string> words = {"UNLINK"};
    words.insert(words.end(), keys.begin(), keys.end());
    return at.ask(keys.front(), words).good();
}

}  // namespace

bool remove_redis_keys(const shared_store& from) {
    auto target = detail::parse_redis_url(from.url);
    if (!std::holds_alternative<detail::redis_target>(target)) return false;
    redis_door at(std::move(std::get<detail::redis_target>(target)));
    // One after the other, because a cluster keeps them on different nodes.
    return remove(at, detail::breaker_keys(from.name_space, guarded_dependency)) &&
           remove(at, detail::breaker_keys(from.name_space, tried_breaker)) &&
           remove(at, {detail::breaker_index_key(from.name_space)});
}

}  // namespace trinco::program::demo
