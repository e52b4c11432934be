// A command line that can be copied into a shell.
#pragma once

#include <span>
#include <string>

namespace trinco::program {

// The words with spaces between, quoted where a POSIX shell needs it. Control characters are left
// to whoever prints. Longer than `most` bytes: shortened, with "..." at the end.
[[nodiscard]] std::string shell_words(std::span<const std::string> words, std::size_t most = 200);

}  // namespace trinco::program
