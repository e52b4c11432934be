#include "apps/trinco/config/file_settings.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/config/toml_file.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "core/breaker_options_table.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using path = std::vector<std::string>;

constexpr std::array<std::string_view, 8> value_keys = {
    "breakers.store", "breakers.namespace", "breakers.mirror", "breakers.password_file",
    "locks.store",    "locks.prefix",       "locks.ttl",       "instance"};
constexpr std::array<std::string_view, 3> table_keys = {"breakers", "locks", "breakers.policies"};
// Of `trinco call`, beside the breaker's own options.
constexpr std::array<std::string_view, 7> call_keys = {
    "timeout", "grace", "failure_exit", "ignore_exit", "fallback", "code_open", "on_no_store"};
// Of them, those that may be written as a list.
constexpr std::array<std::string_view, 2> list_keys = {"failure_exit", "ignore_exit"};

bool contains(std::span<const std::string_view> words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

// A part that is not a plain word is quoted: "a.b" in quotes is another key than a.b.
std::string joined(const path& parts) {
    std::string key;
    for (const std::string& part : parts) {
        const bool plain = !part.empty() && part.find('.') == std::string::npos;
        key += (key.empty() ? "" : ".") + (plain ? part : detail::quoted(part));
    }
    return key;
}

std::vector<std::string_view> policy_keys() {
    std::vector<std::string_view> keys;
    for (const auto& option : detail::breaker_option_table()) keys.push_back(option.key);
    keys.insert(keys.end(), call_keys.begin(), call_keys.end());
    return keys;
}

std::string unknown(std::string_view what, const std::string& key,
                    std::span<const std::string_view> known, std::string_view otherwise) {
    std::string sentence = "there is no " + std::string(what) + " " + detail::quoted(key) + "; ";
    const std::string_view meant = nearest(key, known);
    if (meant.empty()) return sentence + std::string(otherwise);
    return sentence + "did you mean " + std::string(meant) + "?";
}

// One value of the file, or a sentence about it. Sentences about policies are collected.
class reader {
public:
    reader(const std::filesystem::path& file, file_settings& to) : file_(file), to_(to) {}

    [[nodiscard]] std::optional<std::string> take(const toml_value& found) {
        const std::string key = joined(found.path);
        const path& at = found.path;
        if (at.size() > 2 && at[0] == "breakers" && at[1] == "policies") {
            if (const auto wrong = take_policy(found)) {
                to_.policy_problems.push_back({at[2], source(found) + ": " + *wrong});
            }
            return std::nullopt;
        }
        const bool is_table = found.kind == toml_value::kind_t::table;
        if (contains(table_keys, key)) {
            if (is_table) return std::nullopt;
            return key + " is not a table; write [" + key + "] and its settings below";
        }
        if (!contains(value_keys, key)) return unknown_setting(key);
        if (found.kind != toml_value::kind_t::text) {
            return key + " is not a text; write it in quotes";
        }
        to_.values[key] = {found.text, source(found)};
        return std::nullopt;
    }

    [[nodiscard]] std::string source(const toml_value& found) const {
        return file_.native() + ":" + std::to_string(found.line);
    }

private:
    [[nodiscard]] static std::string unknown_setting(const std::string& key) {
        if (key == "breakers.password") {
            return "breakers.password is no setting of a file, which others may read; write "
                   "breakers.password_file, the name of a file that only this user may read";
        }
        std::vector<std::string_view> known(value_keys.begin(), value_keys.end());
        known.insert(known.end(), table_keys.begin(), table_keys.end());
        return unknown("setting", key, known, "'trinco help config' lists them");
    }

    [[nodiscard]] std::optional<std::string> take_policy(const toml_value& found) {
        constexpr std::size_t of_name = 3;  // breakers, policies, the name
        const std::string& name = found.path[of_name - 1];
        if (found.path.size() == of_name) {
            if (found.kind != toml_value::kind_t::table) {
                return detail::quoted(name) + " is not a table of options; write [breakers." +
                       "policies.NAME] and its options below";
            }
            if (auto wrong = detail::check_breaker_name(name)) return wrong;
            to_.policies[name];
            return std::nullopt;
        }
        const std::string key = joined({found.path.begin() + of_name, found.path.end()});
        const auto keys = policy_keys();
        if (!contains(keys, key)) {
            return unknown("option", key, keys, "'trinco help options' lists them");
        }
        const bool plain =
            found.kind != toml_value::kind_t::table && found.kind != toml_value::kind_t::other;
        if (!plain) return key + " is neither a text, a number nor a list of them";
        if (found.kind == toml_value::kind_t::list && !contains(list_keys, key)) {
            return key + " is a list; write one text or number";
        }
        set_policy(to_.policies[name], {key, found.text, source(found)});
        return std::nullopt;
    }

    static void set_policy(std::vector<policy_entry>& of, policy_entry entry) {
        const auto before =
            std::find_if(of.begin(), of.end(), [&](const auto& e) { return e.key == entry.key; });
        if (before == of.end()) {
            of.push_back(std::move(entry));
        } else {
            *before = std::move(entry);
        }
    }

    const std::filesystem::path& file_;
    file_settings& to_;
};

}  // namespace

std::optional<problem> add_file(const std::filesystem::path& file, file_settings& to,
                                const std::function<std::string()>& missing) {
    auto read = read_toml(file);
    if (auto* const wrong = std::get_if<problem>(&read)) return std::move(*wrong);
    const auto& values = std::get<std::optional<std::vector<toml_value>>>(read);
    if (!values) {
        if (missing) return problem{exit_usage, missing()};
        return std::nullopt;
    }
    reader one(file, to);
    for (const toml_value& found : *values) {
        if (const auto wrong = one.take(found)) {
            return problem{exit_usage, one.source(found) + ": " + *wrong};
        }
    }
    return std::nullopt;
}

}  // namespace trinco::program
