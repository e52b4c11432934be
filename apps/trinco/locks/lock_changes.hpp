// What changed between two looks at a store's locks. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/trinco/locks/lock_list.hpp"

namespace trinco::program {

struct lock_change {
    enum class kind_t : std::uint8_t { granted, waits, released, left, asked_back };
    kind_t kind = kind_t::granted;
    std::string name;
    detail::entry what;  // as it was seen last
};

class lock_changes {
public:
    // In the order in which it must have been: what went before what came. The first look finds
    // everything new.
    [[nodiscard]] std::vector<lock_change> look(const std::vector<lock_row>& now);

private:
    struct key {
        std::string name;
        std::string handle;
        auto operator<=>(const key&) const = default;
    };
    std::map<key, detail::entry> known_;
};

// "granted", "waits", "released", "left", "asked_back"
[[nodiscard]] std::string_view event_word(lock_change::kind_t kind) noexcept;
// "NAME granted to "vm:12", token 7" for people.
[[nodiscard]] std::string change_words(const lock_change& change);

}  // namespace trinco::program
