// Text in lines that fit a page.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trinco::program {

// The paragraph (without line breaks) in lines of at most `width` characters, all but the first of
// which begin with `indent` spaces; the first one's are the caller's. Words are never cut. No line
// break at the end.
[[nodiscard]] std::string wrapped(std::string_view paragraph, std::size_t indent = 0,
                                  std::size_t width = 96);

}  // namespace trinco::program
