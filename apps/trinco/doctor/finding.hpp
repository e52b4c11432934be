// What `trinco doctor` found out: one sentence a check, and what to change.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/json.hpp"

namespace trinco::program::doctor {

// good: nothing to do. warn: it works, but not as well as it could, or not for ever. bad: the store
// cannot do its work.
enum class level : std::uint8_t { good, warn, bad };
[[nodiscard]] std::string_view word_of(level l) noexcept;  // "ok", "warn", "bad"

struct finding {
    level how = level::good;
    std::string check;         // a word: "eviction"; always the same for the same question
    std::string sentence;      // what was seen, without a full stop
    std::string advice = {};   // what to change, as an order; empty: nothing
    json_object figures = {};  // what was measured, for JSON
    std::vector<std::string> commands = {};  // lines for a shell that follow the advice, each whole
};

// Of one store.
struct examination {
    std::string use;    // "breakers", "locks", "breakers and locks"
    std::string store;  // its URL, secrets hidden
    std::string name_space = {};
    std::vector<finding> all = {};
    int code = exit_unavailable;  // how the program ends when something is bad

    void add(finding one) { all.push_back(std::move(one)); }
    void good(std::string_view check, std::string sentence, json_object figures = {});
    void warn(std::string_view check, std::string sentence, std::string advice);
    void bad(std::string_view check, std::string sentence, std::string advice);
    [[nodiscard]] level worst() const noexcept;
};

// A block a store; at most 96 characters a line.
[[nodiscard]] std::string text_of(std::span<const examination> stores);
// One line: {"schema", "level", "stores": [{"use", "store", "namespace", "level", "checks": []}]}
[[nodiscard]] std::string json_of(std::span<const examination> stores);
// "check level" of each that is not well, a line each.
[[nodiscard]] std::string names_of(std::span<const examination> stores);
[[nodiscard]] level worst_of(std::span<const examination> stores) noexcept;

}  // namespace trinco::program::doctor
