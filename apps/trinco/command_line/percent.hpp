// Shares as people write them.
#pragma once

#include <string>
#include <string_view>

namespace trinco::program {

// "30%" and "30 %" as a number of one: "0.3". Any other text as it is.
[[nodiscard]] std::string without_percent(std::string_view text);

}  // namespace trinco::program
