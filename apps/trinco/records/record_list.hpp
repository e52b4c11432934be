// The records of a store, and whether their owners live.
#pragma once

#include <chrono>
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
#include "store/lock_store.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct record_row {
    std::string key;             // without the prefix of the settings
    std::uint64_t revision = 0;  // 0: nothing is recorded
    // nullopt: what is kept there is no record of once, or one of a later version.
    std::optional<detail::once_record> is;
    bool owner_lives = false;               // as far as the store knows
    std::optional<detail::entry> holder{};  // of the lock of the key, by which that is known
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

// Nothing when the store that the settings name can have this key, which is one by its form; the
// key is whole, with the prefix.
[[nodiscard]] std::optional<problem> check_key_at(const settings& with, const std::string& key);

// The store that the settings name, open, and what is meant there.
[[nodiscard]] std::variant<records_scene, problem> open_records(const store_flags& where,
                                                                record_scope scope);

// One key, with the prefix; each request is waited for so long.
[[nodiscard]] std::variant<record_row, problem> look_at_record(const store& at,
                                                               const std::string& key,
                                                               std::chrono::milliseconds each);
// By key.
[[nodiscard]] std::variant<std::vector<record_row>, problem> list_records(const records_scene& in);

// It has begun, and who holds the lock of the key is who began it: whoever asks holds it for a
// moment, too.
[[nodiscard]] bool is_run_by_its_owner(const record_row& row);
// It has begun, and nobody holds the lock of the key.
[[nodiscard]] bool is_interrupted(const record_row& row) noexcept;

// "running", "interrupted", "done", "failed", "undone"; "unknown" for what is no record.
[[nodiscard]] std::string_view state_word(const record_row& row) noexcept;

// In sentences: "vm:12 sh" began it at 2026-11-30T21:14:13.358Z as run aeb2..., attempt 2.
[[nodiscard]] std::string begun_words(const detail::once_record& r);
// The same of one whose owner is gone: it may have been killed, or only be cut off.
[[nodiscard]] std::string interrupted_words(const detail::once_record& r);
// "; its session ends in about 2 s unless it is renewed": how long a store of servers takes for
// alive who was killed. Empty where a death is known at once.
[[nodiscard]] std::string life_words(const record_row& row, std::string_view store_url);

[[nodiscard]] std::string records_table(const std::vector<record_row>& rows);
[[nodiscard]] std::string record_table(const record_row& row);
[[nodiscard]] json_object record_json(const record_row& row);

}  // namespace trinco::program
