// What `trinco lock` is asked for, and what follows from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "store/lock_store.hpp"

namespace trinco::program {

struct lock_options {
    std::string name;
    std::optional<std::chrono::milliseconds> wait;  // none: for ever
    bool no_wait = false;
    std::optional<std::chrono::milliseconds> ttl;  // none: that of the settings
    std::optional<std::uint32_t> permits;
    bool shared = false;
    std::optional<std::chrono::milliseconds> grace;  // none: by the TTL
    std::string on_lost = "term";
    std::uint32_t code_not_acquired = exit_not_acquired;
    std::uint32_t code_lost = exit_lost;
    std::string label;
    bool verbose = false;
    bool quiet = false;  // about not getting it
    store_flags where;
};

void declare_lock_options(arguments& to, lock_options& options);
// Those that a lock and an election have in common, in the order of their help: about waiting, and
// about the time before the loss. `ways`: what --on-lost may be.
void declare_waiting(arguments& to, lock_options& options);
void declare_loss(arguments& to, lock_options& options, std::span<const std::string_view> ways,
                  std::string_view help);

// The options, checked together.
struct lock_plan {
    detail::part what;                              // with the prefix of the settings
    std::optional<std::chrono::milliseconds> wait;  // 0: only when it is free
    std::chrono::seconds ttl{0};
    std::chrono::milliseconds grace{0};
    on_deadline at_act = on_deadline::term;
    std::string label;
    // Of who stands in an election: shown to everybody, and nothing else of it is.
    std::optional<std::string> value = {};
};

// `command`: the user's, for the label.
[[nodiscard]] std::variant<lock_plan, problem> plan_of(const lock_options& options,
                                                       const settings& with,
                                                       const std::string& command);

// The command is told `grace` before the session's deadline. A longer grace leaves less time for
// a store that is away: renewals begin at TTL/3, and another TTL/3 must remain for repeating them.
[[nodiscard]] std::chrono::milliseconds longest_grace(std::chrono::seconds ttl);
// min(5 s, TTL/5), and never more than is allowed.
[[nodiscard]] std::chrono::milliseconds default_grace(std::chrono::seconds ttl);

}  // namespace trinco::program
