// Hears from a Sentinel that another server has become the primary.
//
// One connection, to one Sentinel at a time and to the next when it goes; `check` is called
// whenever it is heard (again), since what came before was missed.
//
// The loop's thread; may be destroyed in its callbacks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop.hpp"
#include "store/redis/redis_link.hpp"
#include "store/redis/redis_url.hpp"

namespace trinco::detail {

// The new primary in a message on +switch-master, "name old-host old-port new-host new-port", when
// it is about this name.
[[nodiscard]] std::optional<stream_address> switched_to(std::string_view message,
                                                        const std::string& name);

class sentinel_watch {
public:
    // All outlive it. The address has the target's TLS.
    sentinel_watch(loop& on, stream_factory& streams, const redis_target& target,
                   unique_function<void(stream_address)> switched, unique_function<void()> check);

    [[nodiscard]] link_traffic traffic() const noexcept { return link_->traffic(); }

private:
    void came(const resp_reply& message);

    const redis_target& target_;
    unique_function<void(stream_address)> switched_;
    std::size_t next_;  // the Sentinel
    std::optional<redis_link> link_;
};

}  // namespace trinco::detail
