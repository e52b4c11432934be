// Taking a lock back from those who hold it: asks, waits, and deletes what is left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/trinco/locks/lock_list.hpp"
#include "apps/trinco/locks/locks_scene.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/watching/ending_wish.hpp"

namespace trinco::program {

struct broken_holder {
    enum class how_t : std::uint8_t {
        asked,     // is to give it back; not an end
        released,  // it gave it back, or died
        gone,      // it gave it back, or its lease ran out: the store does not tell which
        expired,   // its lease ran out meanwhile
        deleted    // its entry was deleted; it may still work
    };
    detail::entry what;  // as seen last
    how_t how = how_t::asked;
    std::chrono::milliseconds after{0};
};

struct break_order {
    bool at_once = false;  // deletes without asking
    std::string who;
    std::string why;
};

// The holders of `row`, in its order. While it waits it says so on standard error, at a terminal
// with the time that is left. The problem: the store failed, or (128 + n) a signal came; then the
// holders stay asked.
[[nodiscard]] std::variant<std::vector<broken_holder>, problem> break_lock(const locks_scene& in,
                                                                           const lock_row& row,
                                                                           const break_order& order,
                                                                           ending_wish& end);

// "released", "gone", "expired", "deleted"
[[nodiscard]] std::string_view outcome_word(broken_holder::how_t how) noexcept;

}  // namespace trinco::program
