// Who has the permits of a semaphore, as Go's api.Semaphore writes it: this object of JSON and
// nothing else,
//
//     {"Limit":3,"Holders":{"SESSION":true,"SESSION":true}}
//
// Go takes more than that: it overlooks other members, and drops them when it writes, and takes the
// names of members in capitals or not. What it never writes is refused here, so that nobody's data
// are dropped: another member, one twice, a name in other letters, a holder that is not `true`, a
// limit that is no whole number, an escape in a string. Spaces are taken, and null for no holders.
// Pure; nothing but std, since the simulator has it as well.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace trinco::detail::consul {

struct semaphore_holders {
    std::int64_t limit = 0;
    std::set<std::string> sessions;
    bool operator==(const semaphore_holders&) const = default;
};

[[nodiscard]] std::string text_of(const semaphore_holders& what);
// nullopt: it is not that.
[[nodiscard]] std::optional<semaphore_holders> holders_of(std::string_view value);

}  // namespace trinco::detail::consul
