// The store of breakers that act (b) plays on when it is not one of the demonstration's own: a
// server, in a namespace of its own, from which everything is taken away at the end.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program::demo {

// Its breaker that is written once, to see whether the server takes writes.
inline constexpr const char* tried_breaker = "trial";

struct shared_store {
    std::string url;    // with its password, not to be shown
    std::string shown;  // without
    std::string name_space;
};

// The store of breakers of the settings, tried out; the problem says why it cannot be used, or that
// it is no server.
[[nodiscard]] std::variant<shared_store, problem> find_shared_store(settings with);

// Takes away what the act has left there. Nothing when all is gone; otherwise a sentence that says
// what is left and for how long: at most as long as the breaker's key_ttl.
[[nodiscard]] std::optional<std::string> clear(const shared_store& from);

}  // namespace trinco::program::demo
