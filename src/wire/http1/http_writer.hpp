// Messages as bytes.
//
// A message is refused (http_fault::unwritable) when a method, target, name or value holds what
// would end it early: line breaks, other control characters, blanks where none may be; and when it
// names a field that this writes itself (http_message.hpp).
#pragma once

#include <string>
#include <variant>

#include "wire/http1/http_message.hpp"

namespace trinco::detail {

[[nodiscard]] std::variant<std::string, http_fault> bytes_of(const http_request& request);

// `to_head`: it answers a HEAD request, so it tells the body's length and leaves the body out. A
// status that has no body (1xx, 204, 304) is written without one.
[[nodiscard]] std::variant<std::string, http_fault> bytes_of(const http_response& response,
                                                             bool to_head = false);

}  // namespace trinco::detail
