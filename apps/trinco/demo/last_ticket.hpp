// The last ticket, and two who want it: first without a lock, then with one.
#pragma once

#include <optional>

#include "apps/trinco/demo/stage.hpp"

namespace trinco::program::demo {

struct last_ticket_outcome {
    int sold_without_lock = 0;  // of one
    int sold_with_lock = 0;
    bool told_sold_out = false;  // with the lock: the other buyer
    std::optional<problem> failure = {};
};

// Takes about four seconds.
[[nodiscard]] last_ticket_outcome play_last_ticket(const stage& on);

}  // namespace trinco::program::demo
