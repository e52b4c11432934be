// The records of a store, read page by page, with whether their owners live.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/output/json.hpp"
#include "apps/trinco/problem.hpp"
#include "core/lock/once.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct record_row {
    std::string key;  // without the prefix of the settings
    std::uint64_t revision = 0;
    // nullopt: what is kept there is no record of once, or one of a later version.
    std::optional<detail::once_record> is;
    bool owner_lives = false;  // somebody holds the lock of the key
};

// Keys on the command line, and the store's: with the prefix of the settings in front.
struct record_scope {
    std::string prefix{};
    std::string beginning{};
    bool whole_key = false;
};

struct records_scene {
    store at;
    record_scope scope;
};

// What a word means: KEY is that key; with '*' or '/' at its end it is what the keys begin with,
// and nothing is all.
[[nodiscard]] record_scope records_of(std::string word);

// The store that the settings name, open, and what is meant there.
[[nodiscard]] std::variant<records_scene, problem> open_records(const store_flags& where,
                                                                record_scope scope);

// By key.
[[nodiscard]] std::variant<std::vector<record_row>, problem> list_records(const records_scene& in);

// "running", "interrupted", "done", "failed", "undone"; "unknown" for what is no record.
[[nodiscard]] std::string_view state_word(const record_row& row) noexcept;

[[nodiscard]] std::string records_table(const std::vector<record_row>& rows);
[[nodiscard]] std::string record_table(const record_row& row);
[[nodiscard]] json_object record_json(const record_row& row);

}  // namespace trinco::program
