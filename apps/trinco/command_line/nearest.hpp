// Finds the word that was meant.
#pragma once

#include <span>
#include <string_view>

namespace trinco::program {

// The word that is closest to `typed`, counting insertions, deletions, replacements and swaps of
// neighbours; empty when none is close: more than a third of the letters (at least two) differ.
[[nodiscard]] std::string_view nearest(std::string_view typed,
                                       std::span<const std::string_view> words);

}  // namespace trinco::program
