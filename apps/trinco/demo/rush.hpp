// Eight services sell a hundred tickets: once without a lock, once with one, while things go wrong.
//
// What goes wrong happens to whoever holds the lock at that ticket, in the middle of its sale:
//   killed   `trinco lock` itself gets SIGKILL. Its command must die with it, and the next in line
//            must get the lock.
//   paused   `trinco lock` gets SIGSTOP until the next one holds. Its command must be ended before
//            that, and it must say 76 when it goes on.
//   frozen   `trinco lock`, its guardian and the command get SIGSTOP: what a paused virtual machine
//            does, and what no lock can prevent. The command goes on first, and tries to sell with
//            the token that it had: the shop must refuse it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/trinco/demo/sale.hpp"
#include "apps/trinco/demo/stage.hpp"

namespace trinco::program::demo {

inline constexpr int rush_tickets = 100;
inline constexpr int rush_services = 8;

struct mishap {
    std::string kind;
    int at = 0;               // tickets left
    std::uint64_t token = 0;  // of the victim
    bool happened = false;
    std::optional<std::uint64_t> next_token = {};
    std::optional<std::chrono::milliseconds> handed_on = {};  // since it was killed or stopped
    std::optional<int> exit_code = {};                        // of `trinco lock`
    bool command_ended = false;                               // before the next one held
    bool wrote_after = false;  // its command has sold although another one held the lock
    bool refused = false;      // its late write was
};

struct rush_outcome {
    int sold = 0;                 // receipts
    int sold_more_than_once = 0;  // tickets
    int left = 0;
    std::vector<std::uint64_t> tokens = {};
    bool tokens_increase = false;
    std::vector<mishap> mishaps = {};
    std::chrono::milliseconds took{0};
    std::optional<problem> failure = {};
};

[[nodiscard]] rush_outcome play_rush_without_lock(const stage& on);
[[nodiscard]] rush_outcome play_rush_with_lock(const stage& on);

}  // namespace trinco::program::demo
