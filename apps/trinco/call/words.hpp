// A command in one string, as `--fallback` takes it. No shell reads it: words are separated by
// blanks, quotes and backslashes keep blanks in a word, and nothing else has a meaning.
//
//     cat '/var/cache/last rates.json'        cat | /var/cache/last rates.json
//     echo "it's \"closed\""                  echo | it's "closed"
//     printf %s\n a\ b $HOME                  printf | %sn | a b | $HOME
//
// Inside '...' every character stands for itself; inside "..." a backslash before " or \ is taken
// away; outside of quotes a backslash keeps the next character. Who wants a shell says so:
// --fallback "sh -c '...'".
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trinco::program {

// The words, at least one; or one sentence: no word at all, a quote that is not closed, a backslash
// at the end.
[[nodiscard]] std::variant<std::vector<std::string>, std::string> split_words(
    std::string_view text);

}  // namespace trinco::program
