// Makes byte streams: by connecting, and by waiting for others to connect. The store drivers and
// HTTP get one, the program the real one (net/socket_factory.hpp), tests their own.
//
// The rules of core/loop.hpp hold. Factories and listeners must end before their loop; streams may
// outlive the factory that made them.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "core/loop.hpp"
#include "net/byte_stream.hpp"
#include "net/stream_address.hpp"

namespace trinco::detail {

// Waits for connections. Ends with its destruction: who is not accepted yet is cut off.
class stream_listener {
public:
    virtual ~stream_listener() = default;
    // As asked for, with the port that was found.
    [[nodiscard]] virtual const stream_address& where() const = 0;
    // The next connection, without a deadline. One at a time: a second one is answered with
    // errc::busy. Dropping the op loses no connection: it is the next accept's. Errors concern
    // this process (too_many_files_open, not_enough_memory): connections wait meanwhile, and it may
    // be tried again after a moment.
    [[nodiscard]] virtual op accept(completion<std::unique_ptr<byte_stream>> done) = 0;
};

class stream_factory {
public:
    virtual ~stream_factory() = default;
    // Looks the host's addresses up and tries all of them: the next one when one has failed, or has
    // not answered for a quarter of a second, without giving that one up. Ends by the deadline
    // (std::errc::timed_out), whatever names and network do. Otherwise the error of the last
    // attempt, or net_errc about the name.
    [[nodiscard]] virtual op connect(const stream_address& to, deadline by,
                                     completion<std::unique_ptr<byte_stream>> done) = 0;
    // Listens at once, or says why not: std::errc values (address_in_use, permission_denied,
    // invalid_argument for a host that is a name; "localhost" is 127.0.0.1) and null. A Unix
    // socket that nobody listens at any more is replaced; ours is removed at the end.
    [[nodiscard]] virtual std::unique_ptr<stream_listener> listen(const stream_address& at,
                                                                  std::error_code& error) = 0;
};

// What looking up a name can fail of.
enum class net_errc {
    no_such_host = 1,  // the name exists nowhere, or has no address
    names_unavailable  // no name server answers now; later it may
};

[[nodiscard]] const std::error_category& net_category() noexcept;
[[nodiscard]] std::error_code make_error_code(net_errc e) noexcept;

// "cannot connect to example.com:80: connection refused".
[[nodiscard]] std::string connect_sentence(const stream_address& to, const std::error_code& why);

}  // namespace trinco::detail

template <>
struct std::is_error_code_enum<trinco::detail::net_errc> : std::true_type {};
