// What the keys of a semaphore say at one moment, and how who has its permits is changed. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/consul/consul_holders.hpp"
#include "store/consul/consul_messages.hpp"

namespace trinco::detail::consul {

struct semaphore_state {
    enum class what_t : std::uint8_t {
        free,        // nobody has a permit, and anybody may say how many there are
        counts,      // the rest holds
        other_kind,  // the key is that of a lock, or of something else
        unreadable,  // its value is not what consul_holders.hpp says
    };
    what_t what = what_t::free;
    std::uint64_t flags = 0;
    std::uint64_t index = 0;  // of the key; 0: there is none
    std::int64_t limit = 0;
    std::set<std::string> listed;  // who is said to have a permit
    std::set<std::string> alive;   // those of them whose sessions are

    // Whether there may be a permit for who counts n of them, or something is to be said.
    [[nodiscard]] bool has_news_for(std::uint32_t n) const;
};

// Of the rows under the semaphore's name, of one moment; the key is that of semaphore_key.
[[nodiscard]] semaphore_state state_of(const std::vector<key_value>& rows, std::string_view key);
// Whether the value of that key says so.
[[nodiscard]] bool has_place(const std::optional<key_value>& kv, const std::string& session);

// Those have the permits from now on, if nobody changed it meanwhile; none: the key goes.
[[nodiscard]] operation change_of(const std::string& key, std::uint64_t index, std::int64_t limit,
                                  std::set<std::string> sessions);

}  // namespace trinco::detail::consul
