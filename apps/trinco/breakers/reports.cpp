#include "apps/trinco/breakers/reports.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/command_line/shell_words.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/mirror/mirror_names.hpp"
#include "apps/trinco/mirror/server_mirror.hpp"
#include "apps/trinco/stores/hurried_ask.hpp"
#include "apps/trinco/stores/live_names.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::page;

// A person waits.
constexpr auto patience = 5s;
constexpr auto bear = 300ms;  // a server that restarts is back by then, or is to be named
constexpr std::size_t rows_a_page = 200;
// The search for what was meant looks at no more.
constexpr std::size_t names_to_try = 1'000;
constexpr std::size_t longest_line = 2'000;  // of words that can be pasted whole

// Pages through what begins with the prefix until `take` has enough (false).
template <class Take>
std::error_code each_report(const store& at, std::string_view prefix, std::size_t rows, Take take) {
    std::string from;
    do {
        auto read = ask_breakers_hurried<page>(
            at, patience, bear, [&](detail::breaker_store& on, auto by, auto done) {
                return on.inspect(prefix, from, rows, by, std::move(done));
            });
        if (read.error) return read.error;
        for (report& r : read.value.rows) {
            if (!take(std::move(r))) return {};
        }
        from = std::move(read.value.next);
    } while (!from.empty());
    return {};
}

problem not_read(const breakers_place& in, std::string_view action, const std::error_code& error) {
    if (error != errc::conflict) return not_done(in, action, asked::to_read, error);
    return {exit_unavailable,
            "could not " + std::string(action) + " at " + std::string(in.at.url()) +
                ": something else than the list of names lives under its key; 'trinco doctor" +
                in.words + "' names the key and the way out"};
}

problem is_not_readable(const breakers_place& in, const std::string& name,
                        const std::error_code& why) {
    std::string text = "the breaker " + name + " at " + std::string(in.at.url()) +
                       " cannot be read: " + unreadable_text(why);
    const std::string forget = "'trinco breakers forget " + name + " --confirm " + name;
    if (why == errc::conflict) {
        text += "; 'trinco doctor" + in.words + "' says under which, and " + forget + " --force" +
                in.words + "' removes it";
    } else if (why != errc::not_supported) {
        text += "; " + forget + in.words + "' begins a new one";
    }
    return {exit_unavailable, std::move(text)};
}

std::optional<problem> check_pattern(std::string_view word) {
    if (word == "*") return std::nullopt;
    if (word.ends_with('*')) word.remove_suffix(1);
    if (const auto bad = detail::check_breaker_name(word)) return problem{exit_usage, *bad};
    return std::nullopt;
}

std::optional<problem> check_patterns(std::span<const std::string> words) {
    for (const std::string& word : words) {
        if (auto bad = check_pattern(word)) return bad;
    }
    return std::nullopt;
}

std::vector<std::string> some_names(const store& at) {
    std::vector<std::string> names;
    const std::error_code failed = each_report(at, "", rows_a_page, [&](report&& r) {
        names.push_back(std::move(r.breaker));
        return names.size() < names_to_try;
    });
    if (failed) names.clear();
    return names;
}

}  // namespace

std::variant<std::vector<report>, problem> read_reports(const breakers_place& in,
                                                        std::span<const std::string> names,
                                                        std::string_view action) {
    const store& at = in.at;
    std::map<std::string, report> found;
    const auto keep = [&](report&& r) {
        found.insert_or_assign(r.breaker, std::move(r));
        return true;
    };
    if (names.empty()) {
        if (const auto failed = each_report(at, "", rows_a_page, keep)) {
            return not_read(in, action, failed);
        }
    }
    for (const std::string& word : names) {
        if (auto bad = check_pattern(word)) return std::move(*bad);
        const bool is_prefix = word.ends_with('*');
        const auto one = [&](report&& r) {
            return r.breaker == word && keep(std::move(r)) && false;
        };
        const auto failed =
            is_prefix ? each_report(at, word, rows_a_page, keep) : each_report(at, word, 1, one);
        if (failed) return not_read(in, action, failed);
    }
    std::vector<report> all;
    all.reserve(found.size());
    for (auto& [name, r] : found) all.push_back(std::move(r));
    return all;
}

std::variant<std::optional<report>, problem> read_report(const breakers_place& in,
                                                         const std::string& name,
                                                         std::string_view action) {
    if (const auto bad = detail::check_breaker_name(name)) return problem{exit_usage, *bad};
    auto read = read_reports(in, {&name, 1}, action);
    if (auto* const why = std::get_if<problem>(&read)) return std::move(*why);
    auto& all = std::get<std::vector<report>>(read);
    if (all.empty()) return std::optional<report>();
    if (const auto error = all.front().now.error) return is_not_readable(in, name, error);
    return std::optional<report>(std::move(all.front()));
}

std::error_code unreadable(const store& at, const std::string& name) {
    // Giving back a probe that nobody has changes nothing, and needs the record.
    detail::probe_request nothing;
    nothing.breaker = name;
    nothing.step = detail::probe_step::give_back;
    nothing.token = 1;
    const auto reply = ask_breakers<detail::probe_reply>(
        at, patience, [&](detail::breaker_store& on, auto by, auto done) {
            return on.probe(nothing, by, std::move(done));
        });
    const bool says_so = reply.error == errc::unavailable || reply.error == errc::conflict ||
                         reply.error == errc::not_supported;
    return says_so ? reply.error : std::error_code();
}

std::string unreadable_text(const std::error_code& why) {
    if (why == errc::conflict) return "something else than a breaker lives under one of its keys";
    if (why == errc::not_supported) return "a later version of Trinco has written it";
    return "its record is damaged";
}

problem no_such_breaker(const breakers_place& in, const std::string& name) {
    const store& at = in.at;
    if (const auto why = unreadable(at, name)) return is_not_readable(in, name, why);
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

std::variant<breakers_place, problem> open_breakers(const store_flags& flags,
                                                    std::span<const std::string> names) {
    if (auto bad = check_patterns(names)) return std::move(*bad);
    auto loaded = settings_for(flags, {needs::breakers});
    if (auto* const why = std::get_if<problem>(&loaded)) return std::move(*why);
    return open_breakers(std::get<settings>(loaded), names);
}

std::variant<breakers_place, problem> open_breakers(const settings& with,
                                                    std::span<const std::string> names) {
    if (auto bad = check_patterns(names)) return std::move(*bad);
    auto opened = open_store(with, needs::breakers);
    if (auto* const why = std::get_if<problem>(&opened)) return std::move(*why);
    return breakers_place{std::move(std::get<store>(opened)), store_words(with), with};
}

problem not_done(const breakers_place& in, std::string_view action, asked for_what,
                 const std::error_code& error) {
    problem why = breaker_problem(in.at, action, for_what, error, in.words);
    const bool is_server = server_of(in.with.breakers_url) != nullptr;
    if (why.code != exit_unavailable || !is_server || !server_mirror::open(in.with)) return why;
    const std::string space = mirror_names_of(in.with.breakers_url, in.with.name_space).stand_in;
    const std::vector<std::string> words = {"--breakers", in.with.mirror_url, "--namespace", space};
    why.sentence +=
        "; what 'trinco call' on this machine decides by meanwhile is shown by 'trinco "
        "breakers " +
        shell_words(words, longest_line) + "'";
    return why;
}

void complete_breakers(arguments& to, std::string_view placeholder, const store_flags& flags) {
    to.complete_with(placeholder, [&flags] { return live_breakers(flags); });
}

}  // namespace trinco::program
