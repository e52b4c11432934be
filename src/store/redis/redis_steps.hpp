// What every new connection to a server begins with, before any request: AUTH, SELECT, ROLE ...
//
// Plain values; pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "store/redis/redis_url.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

// Why a connection is of no use.
struct redis_refusal {
    std::error_code error;  // errc::denied: asking again soon is of no use either
    std::string why;        // one sentence
    // A new connection to the same server would hear the same; another server might help.
    bool only_time_helps = false;
};

struct redis_step {
    std::vector<std::string> words;
    // Looks at the reply; nothing when it is well. Empty: every reply but an error is.
    std::function<std::optional<redis_refusal>(const resp_reply&)> check = {};
};

// What an error reply to a step means: denied for NOAUTH, WRONGPASS and NOPERM, else unavailable.
// Names the command and shows the server's line, printable and bounded; of one that may repeat a
// password of ours, the kind of the error alone.
[[nodiscard]] std::optional<redis_refusal> refusal_of(const redis_step& step,
                                                      const resp_reply& reply);

// AUTH when there is a password, SELECT when the database is not the one that everybody begins in.
[[nodiscard]] std::vector<redis_step> login_steps(const redis_login& login, unsigned database);

// What CLIENT LIST shows. Who may not say it is served all the same.
[[nodiscard]] redis_step name_step();

// ROLE: a server that is no primary is refused, since it takes no writes.
[[nodiscard]] redis_step primary_step();

}  // namespace trinco::detail
