// The scripts on a real server as tests need them: with a clock that can be set, and with a bug
// where one is planted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/breaker/record.hpp"
#include "store/redis/script_protocol.hpp"
#include "tests/store/redis/test_server.hpp"

namespace trinco::detail::test {

// The scripts on a server, with the last argument for their clock.
class loaded_scripts {
public:
    // A planted bug: in `of`, this text, which is there once, becomes that one.
    struct bug {
        redis_script of;
        std::string from;
        std::string to;
    };
    // In a build with mutants, and without `planted`: with the bug that is alive (lua_mutant).
    explicit loaded_scripts(test_connection& on, std::optional<bug> planted = {});

    void send(const script_call& call, store_time now);
    // The record in the database, as text_of() writes it.
    [[nodiscard]] std::string record(const std::vector<std::string>& keys, store_time now);
    [[nodiscard]] test_connection& server() noexcept { return on_; }

private:
    test_connection& on_;
    std::map<redis_script, std::string> names_;  // SHA1
    std::string text_;
};

// The planted bugs with a name: redis_lease_without_era, redis_refusal_prolongs_life,
// redis_reads_outside_the_script (which decides on what its caller read before, the 17th argument
// of a probe).
[[nodiscard]] std::optional<loaded_scripts::bug> lua_mutant(std::string_view name);

}  // namespace trinco::detail::test
