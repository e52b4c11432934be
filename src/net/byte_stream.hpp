// A connection that carries bytes in order, both ways: TCP, a Unix socket, later one with TLS, in
// the simulator a pretended one. Who uses it sees no sockets.
//
// The rules of core/loop.hpp hold: the loop's thread; a completion runs later and at most once;
// destroying an op means that it does not run. Nothing here has a deadline of its own: whoever
// waits sets a timer beside it and drops the op or the stream.
//
// At once      one read, which may be one that goes on, and one write. A second one of a kind,
//              while the first is pending or goes on, is answered with errc::busy and changes
//              nothing.
// Dropped      A read whose op is dropped loses nothing: what arrives is the next read's. A write
//              whose op is dropped before its completion may have sent a part, which cannot be
//              taken back: nothing more can be written then (errc::canceled), though still be read.
// The end      of what the peer sends is a read without error and without bytes, again for every
//              further read. Ends that were cut off are errors.
// Destruction  closes the connection and drops what is pending. A stream must end before its loop;
//              when the loop has stopped, pending completions are destroyed without having run and
//              later calls do nothing.
// fork         In a child nothing here does anything; destroying gives the child's descriptor back
//              and leaves the connection to the parent.
// Errors       std::errc values of the system (connection_reset, broken_pipe, timed_out ...), and
//              of trinco: errc::busy, canceled (above), shut_down (after close). No signal: writing
//              to a peer that is gone is an error, not SIGPIPE.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/loop.hpp"

namespace trinco::detail {

class byte_stream {
public:
    virtual ~byte_stream() = default;

    // Some bytes, as soon as there are any, at most 64 KiB. They are the stream's and valid until
    // the completion returns.
    [[nodiscard]] virtual op read_some(completion<std::string_view> done) = 0;
    // For whoever reads all that comes, at less cost: as read_some again and again, with the same
    // function, until it was told the end or an error, or its op is dropped, as it may be inside.
    // What it throws is reported on stderr, and reading goes on.
    [[nodiscard]] virtual op read_each(completion<std::string_view> each);
    // All of them, or an error after which it is not known how many went out. The number is that
    // of the bytes. They have been taken by the system then, not by the peer. Writing nothing
    // succeeds.
    [[nodiscard]] virtual op write(std::string bytes, completion<std::size_t> done) = 0;
    // No more is written: the peer sees the end after a pending write. Reading goes on. Later
    // writes answer shut_down.
    virtual void finish() = 0;
    // Ends both ways now. What is pending, and all that comes later, answers shut_down.
    virtual void close() = 0;
};

}  // namespace trinco::detail
