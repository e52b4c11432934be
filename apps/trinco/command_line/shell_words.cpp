#include "apps/trinco/command_line/shell_words.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace trinco::program {
namespace {

bool is_plain(char c) {
    constexpr std::string_view others = "_-./:=,@%+";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
}

std::string shell_word(const std::string& word) {
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
    std::string quoted = "'";
    for (const char c : word) {
        if (c == '\'') {
            quoted += "'\\''";
        } else {
            quoted += c;
        }
    }
    return quoted + "'";
}

}  // namespace

std::string shell_words(std::span<const std::string> words, std::size_t most) {
    std::string line;
    for (const std::string& word : words) {
        if (!line.empty()) line += ' ';
        line += shell_word(word);
        if (line.size() > most) return line.substr(0, most) + "...";
    }
    return line;
}

}  // namespace trinco::program
