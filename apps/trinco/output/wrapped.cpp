#include "apps/trinco/output/wrapped.hpp"

#include <algorithm>

#include "apps/trinco/output/visible.hpp"

namespace trinco::program {

std::string wrapped(std::string_view paragraph, std::size_t indent, std::size_t width) {
    std::string text;
    std::size_t column = indent;
    while (!paragraph.empty()) {
        const auto end = std::min(paragraph.find(' '), paragraph.size());
        const std::string_view word = paragraph.substr(0, end);
        const std::size_t needed = width_of(word) + (column > indent ? 1 : 0);
        if (column > indent && column + needed > width) {
            text += "\n" + std::string(indent, ' ') + std::string(word);
            column = indent + width_of(word);
        } else {
            if (column > indent) text += ' ';
            text += word;
            column += needed;
        }
        paragraph.remove_prefix(std::min(end + 1, paragraph.size()));
    }
    return text;
}

}  // namespace trinco::program
