// The command line of guarded_http.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "trinco/breaker_options.hpp"

namespace guarded_http {

struct settings {
    using milliseconds = std::chrono::milliseconds;
    std::string url;
    double rate = 20;  // calls per second
    milliseconds run_for{30'000};
    milliseconds timeout{2'000};
    milliseconds slow_after{0};  // 0: half of the timeout
    double failure_rate = 0.5;
    std::uint32_t minimum_calls = 5;
    milliseconds window{5'000};
    milliseconds open_for{2'000};
    double backoff = 2;
    std::uint32_t probes = 3;
    bool json = false;
    bool demo = false;
    bool help = false;

    // What these mean to a breaker.
    [[nodiscard]] trinco::breaker_options breaker() const;
};

// The settings, or one sentence that says what is wrong, with the value and what is allowed.
[[nodiscard]] std::variant<settings, std::string> parse(int argc, const char* const* argv);

// The URL without what may be a secret: all before its last @, its query and its fragment.
[[nodiscard]] std::string shown(std::string_view url);

[[nodiscard]] std::string_view help_text() noexcept;

}  // namespace guarded_http
