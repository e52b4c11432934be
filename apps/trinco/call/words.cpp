#include "apps/trinco/call/words.hpp"

#include <optional>

#include "core/quoted.hpp"

namespace trinco::program {
namespace {

constexpr std::string_view blanks = " \t\n";

struct reading {
    std::string_view rest;
    std::string word;
    bool begun = false;  // of a word: also an empty one, in quotes
};

[[nodiscard]] char take(reading& r) noexcept {
    const char c = r.rest.front();
    r.rest.remove_prefix(1);
    return c;
}

// Up to the closing quote. False when there is none.
[[nodiscard]] bool read_quoted(reading& r, char quote) {
    r.begun = true;
    while (!r.rest.empty()) {
        char c = take(r);
        if (c == quote) return true;
        const bool keeps = quote == '"' && c == '\\' && !r.rest.empty() &&
                           (r.rest.front() == '"' || r.rest.front() == '\\');
        if (keeps) c = take(r);
        r.word += c;
    }
    return false;
}

// One character outside of quotes, or a quoted part.
[[nodiscard]] std::optional<std::string> read_part(reading& r) {
    const char c = take(r);
    if (c == '\'' || c == '"') {
        if (read_quoted(r, c)) return std::nullopt;
        return std::string("its ") + c + " is not closed by another one";
    }
    r.begun = true;
    if (c != '\\') {
        r.word += c;
        return std::nullopt;
    }
    if (r.rest.empty()) return "it ends with a backslash that keeps nothing";
    r.word += take(r);
    return std::nullopt;
}

}  // namespace

std::variant<std::vector<std::string>, std::string> split_words(std::string_view text) {
    const std::string shown = "the command " + detail::quoted(text, 200) + " ";
    std::vector<std::string> words;
    reading r{text, {}, false};
    while (!r.rest.empty()) {
        if (blanks.find(r.rest.front()) == std::string_view::npos) {
            if (auto why = read_part(r)) return shown + "cannot be read: " + *why;
            continue;
        }
        r.rest.remove_prefix(1);
        if (r.begun) words.push_back(std::move(r.word));
        r = {r.rest, {}, false};
    }
    if (r.begun) words.push_back(std::move(r.word));
    if (words.empty() || words.front().empty()) return shown + "has no word to run";
    return words;
}

}  // namespace trinco::program
