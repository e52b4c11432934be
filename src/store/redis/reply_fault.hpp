// What an error reply of a server means for who asked. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

struct reply_fault {
    enum class kind_t : std::uint8_t {
        no_script,  // send the text
        elsewhere,  // this server cannot now; another one, or later
        later,      // so it is, and a new connection to the same one would hear the same
        final       // `error` is the answer
    };
    kind_t kind = kind_t::final;
    std::error_code error;
    // One sentence: the kind of the error and what it means. Never more of the server's text, which
    // may repeat arguments.
    std::string why;
};

// `reply` is an error. Knows the form that errors inside scripts have in each version of Redis.
//
//   no_script      NOSCRIPT
//   elsewhere      READONLY, LOADING, MASTERDOWN, CLUSTERDOWN, TRYAGAIN
//   later          NOREPLICAS, MISCONF
//   busy           OOM, BUSY: not done
//   denied         NOAUTH, WRONGPASS, NOPERM, DENIED: not done; or a right that a script lacked in
//                  its midst: what it wrote before stays
//   conflict       WRONGTYPE, or a script that failed on what it found: something else lives under
//                  this key
//   not_supported  MOVED, ASK, CROSSSLOT: the server belongs to a cluster; an unknown command
//   invalid        anything else
[[nodiscard]] reply_fault fault_of(const resp_reply& reply);

// Of the errors above, and of those of redis_link.hpp: whether they say nothing about the key that
// was asked for.
[[nodiscard]] bool is_of_the_server(std::error_code error) noexcept;

}  // namespace trinco::detail
