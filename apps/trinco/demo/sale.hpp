// One sale: read the stock, think, write one less. What the lock is there for.
//
// `trinco demo-sell` is one as a process, started by hand or by `trinco lock`, whose token it hands
// to the shop. What happens is told as lines on its stdout:
//
//     ready                       with --on-go: waits for a line of stdin
//     reads LEFT PID TOKEN        TOKEN is - without a lock
//     part NAME PID TOKEN         it plays a part (below) and thinks for long
//     sold TICKET TOKEN | refused TICKET TOKEN | sold-out | failed
//                                 TICKET is - when reading was refused
//
// Parts       --part NAME:LEFT: the first process to read LEFT plays NAME, once in a shop. It
//             thinks until something happens to it: it is killed, or it was stopped (SIGSTOP) and
//             goes on, or `longest` is over.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/demo/shop.hpp"

namespace trinco::program::demo {

enum sale_exit : int { sale_made = 0, sale_sold_out = 10, sale_refused = 11, sale_failed = 12 };

struct part {
    std::string name;
    int at = 0;  // how many are left
};

// "NAME:LEFT,...", for the command line.
[[nodiscard]] std::string text_of(const std::vector<part>& parts);
[[nodiscard]] std::vector<part> parts_of(std::string_view text);

struct sale {
    std::string seller;
    std::chrono::milliseconds think{0};
    std::optional<std::uint64_t> token = {};
    std::vector<part> parts = {};
};

// Whoever plays a part thinks at most so long.
inline constexpr std::chrono::seconds longest{20};

// Makes it; `tell` gets the lines above.
[[nodiscard]] sale_exit make_sale(const shop& at, const sale& what,
                                  const std::function<void(const std::string&)>& tell);

}  // namespace trinco::program::demo
