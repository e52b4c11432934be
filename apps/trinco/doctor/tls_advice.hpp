// What to change where TLS is why a server cannot be reached, by the words in which the stores say
// so (store/stream_trouble.hpp). Pure.
#pragma once

#include <string>
#include <string_view>

#include "store/stream_trouble.hpp"

namespace trinco::program::doctor {

// Empty: it is not TLS.
[[nodiscard]] std::string tls_advice(std::string_view why, const trinco::detail::server_words& of);

}  // namespace trinco::program::doctor
