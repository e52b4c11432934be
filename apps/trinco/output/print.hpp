// Standard output, with the care that a full disk and a closed pipe ask for.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace trinco::program {

// Writes at once, without a buffer. exit_ok, or, having said why, exit_output. A reader that has
// gone (EPIPE) is exit_output without a word, as for any command in front of `head`.
[[nodiscard]] int print(std::string_view text);

// Writes all of it to a descriptor; 0 or errno. SIGPIPE is not raised: the answer is EPIPE.
[[nodiscard]] int write_all(int descriptor, std::string_view text);

struct terminal_size {
    std::size_t columns = 0;
    std::size_t rows = 0;  // 0: not known
};
// Nothing: it is no terminal, or does not say.
[[nodiscard]] std::optional<terminal_size> size_of_terminal(int descriptor);

// Whether standard output / standard error is a terminal that takes colours and cursor movements:
// not with NO_COLOR, not with TERM=dumb.
[[nodiscard]] bool is_live_terminal(int descriptor);

}  // namespace trinco::program
