// What a status that is not good means: to the request, to the way it took, to the login. Pure.
#pragma once

#include <optional>
#include <string>

#include "store/etcd/etcd_transport.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::etcd {

struct fault {
    errc code = errc::unavailable;  // what it is to a change
    // The same to what changes nothing, where repeating it is of no use; nothing: it is the same,
    // or repeating may help.
    std::optional<errc> read_code = {};
    bool settled = false;   // an unknown outcome, but of what was answered: nothing lands later
    bool leave = false;     // another endpoint may know better
    bool hopeless = false;  // this endpoint will say the same again: its certificate, say
    bool login = false;     // a new token may help
    std::string sentence;
};

// Of a call or stream to an endpoint of this name.
[[nodiscard]] fault judge(const wire_status& status, const std::string& name);

}  // namespace trinco::detail::etcd
