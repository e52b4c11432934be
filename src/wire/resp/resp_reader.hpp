// Finds the replies in the bytes of a connection to Redis, however they are cut.
//
//     reader.feed(bytes);
//     while (auto reply = reader.next()) ...
//     if (reader.fault()) ...          // close the connection
//
// Pipelining   Replies may follow each other in one piece. Feed more only when next() has nothing.
// Bounds       of resp_limits: memory is at most one reply and one piece. A length that is over a
//              limit is a fault as soon as it is read, before what it announces comes.
// A fault      is for ever: nothing more is read, since where a reply begins is not known. What
//              was complete before it has been given out.
// Types        of RESP2 only. Those of RESP3 that a server would send when nobody asked for them
//              are malformed.
// Threads: one at a time an object. Never throws but for lack of memory.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

class resp_reader {
public:
    explicit resp_reader(const resp_limits& limits = {});
    resp_reader(resp_reader&&) noexcept;
    resp_reader& operator=(resp_reader&&) noexcept;
    ~resp_reader();

    void feed(std::string_view bytes);
    [[nodiscard]] std::optional<resp_reply> next();
    [[nodiscard]] const resp_fault* fault() const noexcept;
    // Nothing of a next reply has come.
    [[nodiscard]] bool idle() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace trinco::detail
