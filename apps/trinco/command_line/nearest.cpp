#include "apps/trinco/command_line/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trinco::program {
namespace {

// The Damerau-Levenshtein distance without overlapping edits. The words are short.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view typed, std::span<const std::string_view> words) {
    constexpr std::size_t longest = 32;  // nobody mistypes a word into something longer
    if (typed.size() > longest) return {};
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(2, typed.size() / 3) + 1;
    for (const std::string_view word : words) {
        const std::size_t d = distance(typed, word);
        if (d < best_distance && d < word.size()) {
            best = word;
            best_distance = d;
        }
    }
    return best;
}

}  // namespace trinco::program
