// The payment gateway of the demonstration: `trinco demo-gateway`, an HTTP server on 127.0.0.1
// whose mood is set from outside.
//
// A line of its stdin sets the mood: healthy (answers 200 after 15 ms), hanging (takes requests and
// never answers) or failing (503 after 5 ms). It ends with its stdin. Its stdout:
//
//     listens PORT
//     mood MOOD AT_US                             it is so from that moment on
//     calls MOOD SINCE NOW PROBES PROBES_MOST     ten times a second when it has changed, and
//                                                 before each change of mood: the calls that have
//                                                 come in this mood, those that wait for an answer
//                                                 now; the probes among them that have come in this
//                                                 mood, and the most that ever waited at a time
//
// Moments are CLOCK_BOOTTIME in microseconds: they compare with those of all other processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "apps/trinco/demo/cast.hpp"

namespace trinco::program::demo {

enum class mood : std::uint8_t { healthy, hanging, failing };
inline constexpr std::size_t moods = 3;

[[nodiscard]] std::string_view word_of(mood m) noexcept;
[[nodiscard]] std::optional<mood> mood_of(std::string_view word) noexcept;

// The field by which a caller marks a request that is a probe of its breaker.
inline constexpr std::string_view probe_field = "X-Probe";

[[nodiscard]] std::chrono::microseconds moment_now() noexcept;

[[nodiscard]] role gateway_role(const std::filesystem::path& errors);

}  // namespace trinco::program::demo
