#include <algorithm>
#include <array>
#include <utility>

#include "apps/trinco/command_line/arguments_impl.hpp"
#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

std::string_view without_dashes(std::string_view name) {
    const auto begin = name.find_first_not_of('-');
    return begin == std::string_view::npos ? std::string_view() : name.substr(begin);
}

// "-o,--output" -> {"-o", "--output"}
std::vector<std::string> split_names(std::string_view names) {
    std::vector<std::string> list;
    while (!names.empty()) {
        const auto end = std::min(names.find(','), names.size());
        list.emplace_back(names.substr(0, end));
        names.remove_prefix(std::min(end + 1, names.size()));
    }
    return list;
}

bool looks_like_option(std::string_view word) {
    return word.size() > 1 && word.starts_with('-');
}

std::string see_help(std::string_view called) {
    return "'trinco " + std::string(called) + (called.empty() ? "" : " ") +
           "--help' lists what there is";
}

}  // namespace

bool arguments::option::is_called(std::string_view name) const {
    const auto all = split_names(names);
    return std::find(all.begin(), all.end(), name) != all.end();
}

arguments::option& arguments::impl::add(std::string_view names, std::string_view placeholder,
                                        std::string_view help_line, take_value take) {
    option made;
    made.names = names;
    made.shown = split_names(names).back();
    made.placeholder = placeholder;
    made.help = help_line;
    made.take = std::move(take);
    made.parsed = placeholder.empty() ? app.add_flag(made.names) : app.add_option(made.names);
    made.parsed->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    options.push_back(std::move(made));
    return options.back();
}

const arguments::option* arguments::impl::find(std::string_view name) const {
    const auto found = std::find_if(options.begin(), options.end(),
                                    [&](const option& o) { return o.is_called(name); });
    return found == options.end() ? nullptr : &*found;
}

problem arguments::impl::unknown(const std::string& typed, std::string_view called) const {
    const std::string name = typed.substr(0, typed.find('='));
    std::vector<std::string> all = {"--help"};
    for (const option& o : options) {
        for (std::string& n : split_names(o.names)) all.push_back(std::move(n));
    }
    std::vector<std::string_view> words;
    for (const std::string& n : all) words.push_back(without_dashes(n));
    std::string sentence = "there is no option " + detail::quoted(name) + "; ";
    const std::string_view meant = nearest(without_dashes(name), words);
    const auto at = std::find(words.begin(), words.end(), meant);
    if (meant.empty() || at == words.end()) {
        sentence += see_help(called);
    } else {
        sentence += "did you mean " + all[static_cast<std::size_t>(at - words.begin())] + "?";
    }
    return {exit_usage, sentence};
}

std::optional<std::string> arguments::impl::sort_rest() {
    std::optional<std::string> first_unknown;
    for (std::string& word : app.remaining()) {
        if (!looks_like_option(word)) {
            given.push_back(std::move(word));
        } else if (!first_unknown) {
            first_unknown = std::move(word);
            given_before_unknown = given.size();
        }
    }
    return first_unknown;
}

std::optional<problem> arguments::impl::take_options() {
    for (const option& o : options) {
        const auto& results = o.parsed->results();
        if (results.empty()) continue;
        const auto wrong = [&](const std::string& what) {
            return problem{exit_usage, o.shown + " " + what};
        };
        if (o.placeholder.empty()) {
            if (results.front() != "true") {
                return wrong("takes no value, but has " + detail::quoted(results.front()));
            }
        } else if (results.size() > 1) {
            return wrong("is given " + std::to_string(results.size()) +
                         " times: " + detail::quoted(results[0]) + " and " +
                         detail::quoted(results[1]) + "; once is enough");
        }
        if (const auto sentence = o.take(results.front())) return wrong(*sentence);
    }
    return std::nullopt;
}

std::optional<problem> arguments::impl::take_places(std::string_view called) {
    std::size_t next = 0;
    for (const place& p : places) {
        if (next == given.size() && p.how == need::required) {
            return problem{exit_usage,
                           p.placeholder + " is missing: " + p.help + "; " + see_help(called)};
        }
        if (next == given.size()) break;
        p.take(given[next++]);
        while (p.takes_all && next < given.size()) p.take(given[next++]);
    }
    if (next == given.size()) return std::nullopt;
    return problem{exit_usage,
                   detail::quoted(given[next]) + " was not expected; " + see_help(called)};
}

std::optional<problem> arguments::parse(std::span<const std::string> words,
                                        std::string_view called) {
    std::vector<std::string> reversed;
    for (const std::string& word : words) {
        // The parser would end at ++ without a word, and read --name= as an option whose value
        // comes next.
        if (word == "++")
            return problem{exit_usage, "\"++\" was not expected; " + see_help(called)};
        const bool ends_empty = word.size() > 3 && word.find('=') == word.size() - 1;
        const option* const empty =
            ends_empty ? impl_->find(word.substr(0, word.size() - 1)) : nullptr;
        if (empty != nullptr && !empty->placeholder.empty()) {
            reversed.push_back(word.substr(0, word.size() - 1));
            reversed.emplace_back();
        } else {
            reversed.push_back(word);
        }
    }
    std::reverse(reversed.begin(), reversed.end());
    bool value_missing = false;
    try {
        impl_->app.parse(std::move(reversed));
    } catch (const CLI::ArgumentMismatch&) {
        value_missing = true;  // only the last word can lack one
    } catch (const CLI::Error& error) {
        return problem{exit_usage,
                       "the command line was not understood: " + detail::quoted(error.what(), 200)};
    }
    const auto first_unknown = impl_->sort_rest();
    if (wants_help()) return std::nullopt;
    if (first_unknown) return impl_->unknown(*first_unknown, called);
    if (value_missing) {
        const option* const last = impl_->find(words.back());
        const std::string expected = last == nullptr ? "a value" : last->placeholder;
        return problem{exit_usage,
                       detail::quoted(words.back()) + " needs " + expected + " behind it"};
    }
    if (auto wrong = impl_->take_options()) return wrong;
    return impl_->take_places(called);
}

}  // namespace trinco::program
