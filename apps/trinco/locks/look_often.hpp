// Looks at the locks of a store again and again, to find out how much they are used.
#pragma once

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include "apps/trinco/locks/lock_list.hpp"
#include "apps/trinco/locks/lock_use.hpp"
#include "apps/trinco/problem.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct looked_often {
    lock_use use;
    std::vector<lock_row> last;  // the last look
    bool lists_waiters = true;
    std::chrono::milliseconds took{0};
};

// For so long, some twenty times a second; less often where a look takes long, so that at most half
// of the time is spent with looking. At least two looks. With `give_up_after`: ends then when
// nothing at all was seen until then. Blocks.
[[nodiscard]] std::variant<looked_often, problem> look_often(
    const store& at, const lock_scope& scope, std::chrono::milliseconds span,
    std::optional<std::chrono::milliseconds> give_up_after = std::nullopt);

}  // namespace trinco::program
