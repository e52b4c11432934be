// The stores that acts play on when they are not the demonstration's own: servers, in a namespace
// or under a prefix of its own, from which everything is taken away at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program::demo {

// Its breaker that is written once, to see whether the server takes writes.
inline constexpr const char* tried_breaker = "trial";

struct shared_store {
    std::string url;         // with its password, not to be shown
    std::string shown;       // without
    std::string name_space;  // of locks: their prefix, which is in the URL, too
};

// The store of breakers of the settings, tried out; the problem says why it cannot be used, or that
// it is no server.
[[nodiscard]] std::variant<shared_store, problem> find_shared_store(settings with);

// The store of locks of the settings: an etcd, tried out, whose keys lie under
// trinco-demo-TIME-NUMBER/ behind the prefixes that the URL and the settings have.
[[nodiscard]] std::variant<shared_store, problem> find_shared_locks(const settings& with);

// The URL of an etcd with this behind the prefix that it has. Pure.
[[nodiscard]] std::string with_prefix(const std::string& url, std::string_view more);

// What the prefix of a demonstration is called, and since when it may be (seconds since 1970), by
// which later ones find what killed ones have left. Pure.
inline constexpr std::string_view own_prefix = "trinco-demo-";
[[nodiscard]] std::string prefix_of_demo(std::int64_t now, std::uint32_t number);
[[nodiscard]] std::optional<std::int64_t> time_in_prefix(std::string_view name);

// Takes away what the acts have left there. Nothing when all is gone; otherwise a sentence that
// says what is left, and for how long or what to do.
[[nodiscard]] std::optional<std::string> clear(const shared_store& from);

}  // namespace trinco::program::demo
