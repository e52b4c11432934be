#include "wire/resp/resp_writer.hpp"

#include <charconv>
#include <cstddef>

namespace trinco::detail {
namespace {

constexpr std::size_t most_bytes = 512UL * 1024 * 1024;
constexpr std::size_t most_around = sizeof "$0000000000\r\n\r\n";  // a word

void append_length(std::string& to, char kind, std::size_t length) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, length).ptr;
    to += kind;
    to.append(digits, end);
    to += "\r\n";
}

template <class Word>
std::string command_of(std::span<const Word> words) {
    std::size_t all = most_around;
    for (const std::string_view word : words) {
        all += word.size() + most_around;
        if (all > most_bytes) return {};
    }
    std::string made;
    if (words.empty()) return made;
    made.reserve(all);
    append_length(made, '*', words.size());
    for (const std::string_view word : words) {
        append_length(made, '$', word.size());
        made += word;
        made += "\r\n";
    }
    return made;
}

}  // namespace

std::string resp_command(std::span<const std::string> words) {
    return command_of(words);
}

std::string resp_command(std::span<const std::string_view> words) {
    return command_of(words);
}

}  // namespace trinco::detail
