// A few commands for a Redis that no store sends, for a command that waits: the way to the server
// of a key, whatever the URL stands for.
//
// Threads: one, not the loop's. Errors are values.
#pragma once

#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "store/redis/redis_url.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::program {

class redis_door {
public:
    // Begins to connect.
    explicit redis_door(detail::redis_target target);
    ~redis_door();
    redis_door(const redis_door&) = delete;
    redis_door& operator=(const redis_door&) = delete;

    struct answer {
        std::error_code error;  // no reply came within some seconds
        detail::resp_reply reply = {};

        [[nodiscard]] bool good() const noexcept {
            return !error && !reply.is(detail::resp_reply::kind_t::error);
        }
    };
    // One command about keys of one slot, that of `key`.
    [[nodiscard]] answer ask(const std::string& key, const std::vector<std::string>& words);

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace trinco::program
