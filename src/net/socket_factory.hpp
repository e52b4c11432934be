// Byte streams over the sockets of the system, on a real loop.
//
// TCP          no delay; data that nobody acknowledges for 30 s end the connection.
// Descriptors  close-on-exec, non-blocking.
// Names        are looked up by threads of their own ("trinco-names"), at most two at a time, which
//              exist only as long as a look-up does: the system's getaddrinfo cannot be
//              interrupted. When one hangs, connecting ends by its deadline all the same; the
//              thread goes when getaddrinfo returns, whatever has ended meanwhile. Addresses in
//              figures need none.
// Threads      the loop's thread, also for making and ending one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "net/event_loop.hpp"
#include "net/stream_factory.hpp"

namespace trinco::detail {

// The addresses of a host, in figures, best first; or why there are none.
struct name_answer {
    std::error_code error;
    std::vector<std::string> addresses;
};
using name_lookup = std::function<name_answer(const std::string& host)>;

// The system's: /etc/hosts, DNS and what else it is set up for. Blocks.
[[nodiscard]] name_answer look_up_by_system(const std::string& host);

// `names` is called on other threads, also after the factory has ended.
[[nodiscard]] std::unique_ptr<stream_factory> make_socket_factory(
    event_loop& on, name_lookup names = look_up_by_system);

}  // namespace trinco::detail
