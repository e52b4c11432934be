// What the commands of `trinco locks` have in common: the store that the settings name, open.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/locks/lock_list.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/watching/listening.hpp"
#include "apps/trinco/watching/waiting_room.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct locks_scene {
    store at;
    lock_scope scope;
};

// What a word on the command line means: NAME is that lock; with '*' or '/' at its end it is what
// the names begin with, and nothing is all.
[[nodiscard]] lock_scope scope_of(std::string word);
inline constexpr const char* what_is_meant =
    "that lock, or with '*' or '/' at its end what the names begin with; all without";

// The prefix of the scope is that of the settings, whatever is in it.
[[nodiscard]] std::variant<locks_scene, problem> open_scene(const store_flags& where,
                                                            lock_scope scope);

// Completion of names from the store, as it is when somebody presses the key.
void complete_locks(arguments& to, std::string_view placeholder, const store_flags& where);

// Rings when another one holds the lock that the scope names; never for a scope of many.
[[nodiscard]] listening ring_at_changes(const locks_scene& scene, std::shared_ptr<bell> door);

// What an empty table means.
[[nodiscard]] std::string nothing_there(const locks_scene& scene);

}  // namespace trinco::program
