#include "apps/trinco/breakers/reports.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/live_names.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::page;

// A person waits.
constexpr auto patience = 5s;
constexpr std::size_t rows_a_page = 200;
// The search for what was meant looks at no more.
constexpr std::size_t names_to_try = 1'000;

// Pages through what begins with the prefix until `take` has enough (false).
template <class Take>
std::optional<problem> each_report(const store& at, std::string_view prefix, std::size_t rows,
                                   Take take) {
    std::string from;
    do {
        auto read =
            ask_breakers<page>(at, patience, [&](detail::breaker_store& on, auto by, auto done) {
                return on.inspect(prefix, from, rows, by, std::move(done));
            });
        if (read.error) return store_problem(at, "list breakers", read.error);
        for (report& r : read.value.rows) {
            if (!take(std::move(r))) return std::nullopt;
        }
        from = std::move(read.value.next);
    } while (!from.empty());
    return std::nullopt;
}

std::optional<problem> check_pattern(std::string_view word) {
    if (word == "*") return std::nullopt;
    if (word.ends_with('*')) word.remove_suffix(1);
    if (const auto bad = detail::check_breaker_name(word)) return problem{exit_usage, *bad};
    return std::nullopt;
}

std::vector<std::string> some_names(const store& at) {
    std::vector<std::string> names;
    const auto failed = each_report(at, "", rows_a_page, [&](report&& r) {
        names.push_back(std::move(r.breaker));
        return names.size() < names_to_try;
    });
    if (failed) names.clear();
    return names;
}

}  // namespace

std::variant<std::vector<report>, problem> read_reports(const store& at,
                                                        std::span<const std::string> names) {
    std::map<std::string, report> found;
    const auto keep = [&](report&& r) {
        found.insert_or_assign(r.breaker, std::move(r));
        return true;
    };
    if (names.empty()) {
        if (auto failed = each_report(at, "", rows_a_page, keep)) return std::move(*failed);
    }
    for (const std::string& word : names) {
        if (auto bad = check_pattern(word)) return std::move(*bad);
        const bool is_prefix = word.ends_with('*');
        const auto one = [&](report&& r) {
            return r.breaker == word && keep(std::move(r)) && false;
        };
        auto failed =
            is_prefix ? each_report(at, word, rows_a_page, keep) : each_report(at, word, 1, one);
        if (failed) return std::move(*failed);
    }
    std::vector<report> all;
    all.reserve(found.size());
    for (auto& [name, r] : found) all.push_back(std::move(r));
    return all;
}

std::variant<std::optional<report>, problem> read_report(const store& at, const std::string& name) {
    if (const auto bad = detail::check_breaker_name(name)) return problem{exit_usage, *bad};
    auto read = read_reports(at, {&name, 1});
    if (auto* const why = std::get_if<problem>(&read)) return std::move(*why);
    auto& all = std::get<std::vector<report>>(read);
    if (all.empty()) return std::optional<report>();
    return std::optional<report>(std::move(all.front()));
}

bool is_unreadable(const store& at, const std::string& name) {
    // Giving back a probe that nobody has changes nothing, and needs the record.
    detail::probe_request nothing;
    nothing.breaker = name;
    nothing.step = detail::probe_step::give_back;
    nothing.token = 1;
    const auto reply = ask_breakers<detail::probe_reply>(
        at, patience, [&](detail::breaker_store& on, auto by, auto done) {
            return on.probe(nothing, by, std::move(done));
        });
    return reply.error == errc::unavailable;
}

problem no_such_breaker(const store& at, const std::string& name) {
    if (is_unreadable(at, name)) {
        return {exit_unavailable, "the record of " + name +
                                      " cannot be read; 'trinco breakers "
                                      "forget " +
                                      name + " --confirm " + name + "' begins a new one"};
    }
    std::string sentence = "the store " + std::string(at.url()) + " has no breaker " +
                           detail::quoted(name) + " in the namespace " +
                           std::string(at.name_space());
    const std::vector<std::string> names = some_names(at);
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view meant = nearest(name, views);
    if (!meant.empty())
        return {exit_usage, sentence + "; did you mean " + std::string(meant) + "?"};
    return {exit_usage, sentence + "; 'trinco breakers' lists those that it has"};
}

std::variant<store, problem> open_breakers(const store_flags& flags,
                                           std::span<const std::string> names) {
    for (const std::string& word : names) {
        if (auto bad = check_pattern(word)) return std::move(*bad);
    }
    const auto loaded = load_settings(flags);
    if (const auto* why = std::get_if<problem>(&loaded)) return *why;
    return open_store(std::get<settings>(loaded), needs::breakers);
}

void complete_breakers(arguments& to, std::string_view placeholder, const store_flags& flags) {
    to.complete_with(placeholder, [&flags] { return live_breakers(flags); });
}

}  // namespace trinco::program
