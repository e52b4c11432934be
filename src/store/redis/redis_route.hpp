// The way to the server that holds a key, whatever the URL stands for: one server, the primary that
// Sentinels name, or the nodes of a cluster. Keeps itself up, and says when another server answers.
//
// The rules of core/loop.hpp hold: the loop's thread; a completion runs later, at most once;
// dropping the op drops the interest.
//
// Requests     go out in the order of their coming for one key's server, in a pipeline, and are
//              answered as redis_link answers. What a server says about where else to go is
//              followed (MOVED, ASK, also TRYAGAIN while there is time) and never shown; nothing
//              else is repeated.
// Wrong ones   A server that cannot do what it should (READONLY, LOADING, MASTERDOWN, CLUSTERDOWN,
//              NOREPLICAS, MISCONF) is left by mistrust(): the way is looked for anew, with full
//              jitter. Requests wait for it until their deadlines. Where only time helps
//              (NOREPLICAS, MISCONF; see redis_refusal) and there is no other server, it stays.
// Listening    A channel is heard on a connection of its own. Of a cluster any node serves.
// Servers      `other_server` is reported when the life of a server (its run id, read on each new
//              connection; unknown where the user may not ask) is not that of before, and when keys
//              have moved to another node. Leases that were granted before may be unknown to it.
// Destruction  closes the connections; nothing runs any more. It may happen in any of our
//              callbacks, and must come before the end of the loop and of the factory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/loop.hpp"
#include "store/redis/redis_link.hpp"
#include "store/redis/redis_url.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

struct route_event {
    enum class kind_t : std::uint8_t {
        up,            // requests reach a server (again)
        down,          // they do not; `reason` says why
        other_server,  // see Servers; comes after `up`
        hearing,       // the channel is listened to (again): what came in between was missed
        deaf           // it is not; `reason` says why (denied: no right to the channel)
    };
    kind_t kind = kind_t::up;
    redis_refusal reason = {};
};

// For `trinco doctor` and measurements. All since the beginning.
struct route_traffic : link_traffic {
    std::uint64_t redirections = 0;  // of a cluster
};

class redis_route {
public:
    using on_event = unique_function<void(const route_event&)>;
    using on_message = unique_function<void(std::string_view payload)>;
    using may_wait = std::function<bool(std::string_view payload)>;  // of redis_link_options

    virtual ~redis_route() = default;

    // One command, as resp_command writes it; all its keys are in the slot of `key`.
    [[nodiscard]] virtual op request(std::string_view key, std::string command, deadline by,
                                     completion<resp_reply> done) = 0;
    // The server of this key answered that it is of no use now.
    virtual void mistrust(std::string_view key, redis_refusal why) = 0;
    // Once at most.
    virtual void listen(std::string channel, on_message heard, may_wait wait = {}) = 0;
    [[nodiscard]] virtual bool up(std::string_view key) const noexcept = 0;
    // Whether a request was sent and has no reply yet.
    [[nodiscard]] virtual bool awaits() const noexcept = 0;
    [[nodiscard]] virtual route_traffic traffic() const noexcept = 0;
};

// The way that the URL names; begins to connect. `streams` makes TLS connections, too, when the
// target wants them.
[[nodiscard]] std::unique_ptr<redis_route> make_redis_route(loop& on, stream_factory& streams,
                                                            redis_target target,
                                                            redis_route::on_event changed);

}  // namespace trinco::detail
