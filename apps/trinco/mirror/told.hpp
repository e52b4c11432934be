// What a server has told this machine about one breaker, and how a server that has lost it is told
// it again. Pure.
//
// Order       Of two views the later one wins, as everywhere (view::newer_than), but for one case:
//             a server that has lost its data begins at era 0, and whatever an operator does there
//             comes after all that was lost. Then the state is that of the mirror, and the operator
//             is believed. His words carry the server's time, by which they are known.
// Options     travel with the stamp of the server that had them. It tells the later ones, and
//             whether an operator had set them (odd): they come back as set, and what was unset
//             does not come back.
#pragma once

#include <cstdint>
#include <string>

#include "core/breaker/messages.hpp"
#include "core/breaker/view.hpp"

namespace trinco::program {

struct told_options {
    std::string text;         // empty: not known
    std::uint64_t stamp = 0;  // of the server

    [[nodiscard]] bool are_set() const noexcept { return stamp % 2 == 1; }
};

struct told {
    detail::view fleet;
    told_options options;
};

// What holds, of what was told before and what the server says now. That of the server, unless it
// has lost something.
[[nodiscard]] detail::view believed(const detail::view& before, const detail::view& now);

// What tells a server again: of `options`, `fleet` and nothing else.
[[nodiscard]] detail::news again(const std::string& breaker, const detail::view& fleet,
                                 const told_options& options);

}  // namespace trinco::program
