#include "apps/trinco/setup_machine/machine_toml.hpp"

#include <algorithm>
#include <vector>

#include "apps/trinco/config/toml_file.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using values_t = std::vector<toml_value>;

constexpr std::size_t value_shown = 256;

const toml_value* find(const values_t& in, const std::vector<std::string>& path) {
    const auto at =
        std::find_if(in.begin(), in.end(), [&](const toml_value& v) { return v.path == path; });
    return at == in.end() ? nullptr : &*at;
}

// Behind the line with this number, counted from 1; 0: at the beginning.
std::string with_line(std::string text, std::size_t after, const std::string& line) {
    std::size_t at = 0;
    for (; after > 0 && at < text.size(); --after) {
        const auto end = text.find('\n', at);
        if (end == std::string::npos) text += '\n';
        at = std::min(text.find('\n', at), text.size() - 1) + 1;
    }
    return text.insert(at, line + "\n");
}

// Ways to write it, the one that reads best first.
std::vector<std::string> attempts(const std::string& text, const values_t& values,
                                  const std::string& table, const std::string& assignment) {
    std::vector<std::string> all;
    if (const auto* const there = find(values, {table})) {
        all.push_back(with_line(text, there->line, assignment));
    }
    const std::string gap = text.empty() || text.ends_with("\n\n") ? ""
                            : text.ends_with('\n')                 ? "\n"
                                                                   : "\n\n";
    all.push_back(text + gap + "[" + table + "]\n" + assignment + "\n");
    all.push_back(with_line(text, 0, table + "." + assignment));
    return all;
}

// Whether `after` is `before` and this one value.
bool adds_only(const values_t& before, const values_t& after, const std::vector<std::string>& path,
               std::string_view value) {
    const auto* const added = find(after, path);
    if (added == nullptr || added->text != value) return false;
    const bool kept = std::all_of(before.begin(), before.end(), [&](const toml_value& v) {
        const auto* const now = find(after, v.path);
        return now != nullptr && now->kind == v.kind && now->text == v.text;
    });
    const std::size_t table = find(before, {path.front()}) == nullptr ? 1 : 0;
    return kept && after.size() == before.size() + 1 + table;
}

std::variant<std::string, problem> with_key(const std::string& text, const std::string& table,
                                            std::string_view url,
                                            const std::filesystem::path& file) {
    const auto parsed = parse_toml(text, file);
    if (const auto* const bad = std::get_if<problem>(&parsed)) return *bad;
    const auto& values = std::get<values_t>(parsed);
    const std::vector<std::string> path = {table, "store"};
    if (const auto* const set = find(values, path)) {
        if (set->text == url) return text;
        return problem{exit_usage, file.native() + ":" + std::to_string(set->line) + ": " + table +
                                       ".store is " + detail::quoted(set->text, value_shown) +
                                       " already; remove it there, or leave things as they are"};
    }
    const std::string assignment = "store = \"" + std::string(url) + "\"";
    for (const auto& attempt : attempts(text, values, table, assignment)) {
        const auto now = parse_toml(attempt, file);
        if (const auto* const good = std::get_if<values_t>(&now);
            good != nullptr && adds_only(values, *good, path, url)) {
            return attempt;
        }
    }
    return problem{exit_usage, "there is no place for " + table + "." + assignment + " in " +
                                   file.native() + " as it is written; add it by hand"};
}

}  // namespace

std::variant<std::string, problem> with_store(const std::optional<std::string>& text,
                                              std::string_view url,
                                              const std::filesystem::path& file) {
    auto named = with_key(text.value_or("# The stores of this machine, shared by the group trinco."
                                        " Made by 'trinco setup --machine'.\n"),
                          "breakers", url, file);
    if (std::holds_alternative<problem>(named)) return named;
    return with_key(std::get<std::string>(named), "locks", url, file);
}

}  // namespace trinco::program
