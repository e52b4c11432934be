#include "apps/trinco/process/shell_hint.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "apps/trinco/command_line/shell_words.hpp"

namespace trinco::program {
namespace {

constexpr std::array<std::string_view, 18> words_of_shells = {
    "alias", "bg",     "cd",    "declare", "eval",  "exec",  "export", "fg",  "if",
    "for",   "source", "umask", "ulimit",  "unset", "until", "while",  "let", "local"};

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// FOO=1
bool is_assignment(std::string_view word) {
    const auto end = word.find('=');
    if (end == 0 || end == std::string_view::npos || !is_letter(word.front())) return false;
    return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end),
                       [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

std::string through_a_shell(const std::string& line) {
    const std::array<std::string, 3> words = {"sh", "-c", line};
    return shell_words(words);
}

}  // namespace

std::string words_for_a_shell(std::span<const std::string> command) {
    if (command.empty()) return "";
    const std::string& first = command.front();
    if (is_assignment(first)) {
        std::vector<std::string> words = {"env"};
        words.insert(words.end(), command.begin(), command.end());
        return "; a variable is set by env: " + shell_words(words);
    }
    if (std::find(words_of_shells.begin(), words_of_shells.end(), first) != words_of_shells.end()) {
        return "; only a shell knows it: " + through_a_shell(shell_words(command));
    }
    // With more words it may be a file with a blank in its name, which is not there.
    const bool is_line = first.find_first_of(" \t\n;|&<>()$`*?{}~") != std::string::npos;
    if (!is_line || command.size() > 1) return "";
    return "; a shell takes such a line: " + through_a_shell(first);
}

}  // namespace trinco::program
