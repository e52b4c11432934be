// What an answer that is none means: to the request, to the way it took. Pure, but for a look at
// files that could not be read.
#pragma once

#include <optional>
#include <string>

#include "net/http_client.hpp"
#include "net/tls_settings.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::consul {

struct fault {
    errc code = errc::unavailable;  // what it is to a change
    // The same to what changes nothing, where repeating it is of no use; nothing: it is the same,
    // or repeating may help.
    std::optional<errc> read_code = {};
    bool leave = false;     // another address may know better
    bool hopeless = false;  // this address will say the same again: its certificate, say
    bool token = false;     // the token was refused
    std::string sentence;
};

// Whether the server carried it out, or says that there is nothing, or why a transaction is
// refused.
[[nodiscard]] bool is_answer(const http_answer& said) noexcept;
// Of a call to an address of this name which is_answer is not. `tls`: as it was made.
[[nodiscard]] fault judge(const http_answer& said, const std::string& name,
                          const std::optional<tls_settings>& tls);

}  // namespace trinco::detail::consul
