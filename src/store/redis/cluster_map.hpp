// Which node of a cluster owns which slot, as far as is known, and what nodes say about it.
//
// Plain values; pure. Addresses are taken as they are announced; where a node names none, it is
// that of the node that was asked. Their TLS is that of the node that was asked, too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "net/stream_address.hpp"
#include "store/redis/redis_slot.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

class cluster_map {
public:
    cluster_map() { owners_.fill(nobody); }
    // From the reply to CLUSTER SLOTS. Nothing when it makes no sense, or names no owner at all.
    [[nodiscard]] static std::optional<cluster_map> from(const resp_reply& reply,
                                                         const stream_address& asked);

    // Null when nobody is known.
    [[nodiscard]] const stream_address* owner(unsigned slot) const noexcept;
    void set_owner(unsigned slot, const stream_address& node);
    // Those that own slots, or did.
    [[nodiscard]] const std::vector<stream_address>& nodes() const noexcept { return nodes_; }

private:
    static constexpr std::uint16_t nobody = 0xffff;
    [[nodiscard]] std::optional<std::uint16_t> index_of(const stream_address& node);

    std::vector<stream_address> nodes_;
    std::array<std::uint16_t, redis_slots> owners_;  // indexes of nodes_
};

// "MOVED 3999 10.0.0.1:6381", "ASK 3999 :6381": the request is to be sent there.
struct redirection {
    bool moved = false;  // for good; else for this request only, after ASKING
    unsigned slot = 0;
    stream_address to;
};

// Nothing when the reply is none.
[[nodiscard]] std::optional<redirection> redirection_in(const resp_reply& reply,
                                                        const stream_address& asked);

}  // namespace trinco::detail
