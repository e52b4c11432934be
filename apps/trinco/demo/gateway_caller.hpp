// A service of the demonstration that calls the payment gateway at a steady rate, each call with a
// time limit, as many at a time as there are: `trinco demo-caller`.
//
// With a store (TRINCO_BREAKERS and TRINCO_NAMESPACE of its environment, which other users cannot
// read) it asks the breaker "payments" before each call, which it shares with the others
// through that store; it is a voter of its own, as if it ran on a machine of its own.
//
// It says "ready", waits for the line "go" on its stdin, and ends with its stdin. Its stdout:
//
//     ready
//     call AT_US TOOK_NS FATE [probe]    begun at that moment; FATE is ok, failed (by its answer),
//                                        timeout or refused (by the breaker)
//     state AT_US STATE                  of the breaker, from that moment on
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "apps/trinco/demo/cast.hpp"
#include "trinco/breaker_options.hpp"
#include "trinco/breaker_types.hpp"

namespace trinco::program::demo {

struct caller_settings {
    std::string name;  // its voter
    std::uint16_t port = 0;
    std::uint32_t seed = 1;  // of the pauses between calls
    std::string store = {};  // empty: calls without a breaker; may hold a password
    std::string name_space = "default";
    std::filesystem::path errors = {};
};

inline constexpr std::string_view guarded_dependency = "payments";
inline constexpr std::chrono::milliseconds call_limit{2'000};
inline constexpr std::uint32_t calls_per_second = 20;

// Short enough to watch: it notices calls that hang after 300 ms, and tries again after 2 s.
[[nodiscard]] breaker_options caller_breaker();

[[nodiscard]] role caller_role(const caller_settings& of);

enum class call_fate : std::uint8_t { ok, failed, timeout, refused };

struct made_call {
    std::chrono::microseconds at{0};
    std::chrono::nanoseconds took{0};
    call_fate fate = call_fate::ok;
    bool probe = false;
};

struct state_change {
    std::chrono::microseconds at{0};
    breaker_state to = breaker_state::closed;
};

// What a line says; nothing when it is another line.
[[nodiscard]] std::optional<made_call> call_in(const std::string& line);
[[nodiscard]] std::optional<state_change> state_in(const std::string& line);

}  // namespace trinco::program::demo
