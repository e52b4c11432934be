// The scripts that decide for a fleet inside Redis, as texts for SCRIPT LOAD and EVAL. They are the
// files lua/*.lua, embedded at build; each file's head is its manual, lua/record.lua that of the
// layout in the database. They repeat core/breaker/record.hpp, and are compared with it on a real
// server by tests/store/redis/lua_differential_realtime_test.cpp.
//
// For Redis from 6.0 on and Valkey: Lua 5.1 with cmsgpack and struct, and replication of effects,
// since the scripts read TIME before they write.
#pragma once

#include <cstdint>
#include <string_view>

namespace trinco::detail {

enum class redis_script : std::uint8_t { exchange, look, probe, control, inspect, index };

// Begins with redis_time_source(), the only lines by which the scripts know the time.
[[nodiscard]] std::string_view text_of(redis_script s) noexcept;
// Its SHA-1, as EVALSHA wants it.
[[nodiscard]] std::string_view name_of(redis_script s) noexcept;
[[nodiscard]] std::string_view redis_time_source() noexcept;

}  // namespace trinco::detail
