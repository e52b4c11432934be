// What went wrong with a connection, as a status: for people and for what is above. Pure, but for
// a look at files that could not be read.
#pragma once

#include <optional>
#include <system_error>

#include "net/tls_settings.hpp"
#include "store/etcd/etcd_transport.hpp"
#include "wire/http2/http2_client.hpp"

namespace trinco::detail::etcd {

// No connection was made. `tls`: as it was tried.
[[nodiscard]] wire_status no_connection(std::error_code why,
                                        const std::optional<tls_settings>& tls);
// It ended; `greeted`: the server had said what HTTP/2 begins with. No error: the server ended it.
[[nodiscard]] wire_status connection_lost(std::error_code why, bool greeted);
// What came was not HTTP/2, or broke its rules.
[[nodiscard]] wire_status not_understood(const http2_fault& what);

}  // namespace trinco::detail::etcd
