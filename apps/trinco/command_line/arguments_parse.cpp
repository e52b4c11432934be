#include <algorithm>
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
    options.push_back(std::move(made));
    return options.back();
}

const arguments::option* arguments::impl::find(std::string_view name) const {
    const auto found = std::find_if(options.begin(), options.end(),
                                    [&](const option& o) { return o.is_called(name); });
    return found == options.end() ? nullptr : &*found;
}

arguments::option* arguments::impl::find(std::string_view name) {
    return const_cast<option*>(std::as_const(*this).find(name));
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

void arguments::impl::sort(words_left words) {
    while (!words.empty()) {
        const std::string& word = words.front();
        if (word.starts_with("--")) {
            words = sort_long(words);
        } else if (looks_like_option(word)) {
            words = sort_short(words);
        } else {
            given.push_back(word);
            words = words.subspan(1);
        }
    }
}

arguments::impl::words_left arguments::impl::sort_long(words_left words) {
    const std::string& word = words.front();
    const auto behind = words.subspan(1);
    const auto equals = word.find('=');
    const auto name = std::string_view(word).substr(0, equals);
    if (name == "--help") {
        wants_help = true;
        return behind;
    }
    option* const o = find(name);
    if (o == nullptr) {
        note_unknown(word);
        return behind;
    }
    o->is_given = true;
    if (equals != std::string::npos) {
        o->values.push_back(word.substr(equals + 1));
        return behind;
    }
    return o->is_flag() ? behind : take_value_of(*o, behind);
}

// One letter after another; what stands behind an option's letter is its value.
arguments::impl::words_left arguments::impl::sort_short(words_left words) {
    const auto behind = words.subspan(1);
    for (auto letters = std::string_view(words.front()).substr(1); !letters.empty();) {
        const std::string name{'-', letters.front()};
        if (name == "-h") {
            wants_help = true;
            letters.remove_prefix(1);
            continue;
        }
        option* const o = find(name);
        if (o == nullptr) {
            note_unknown(words.front());
            return behind;
        }
        o->is_given = true;
        letters.remove_prefix(1);
        // "-n=7" is "-n7", as "--permits=7" is; a flag takes neither.
        if (letters.starts_with('=')) {
            o->values.emplace_back(letters.substr(1));
            return behind;
        }
        if (o->is_flag()) continue;
        if (letters.empty()) return take_value_of(*o, behind);
        o->values.emplace_back(letters);
        return behind;
    }
    return behind;
}

// Whatever the next word looks like.
arguments::impl::words_left arguments::impl::take_value_of(option& o, words_left behind) {
    if (behind.empty()) {
        lacks_value = true;
        return behind;
    }
    o.values.push_back(behind.front());
    return behind.subspan(1);
}

void arguments::impl::note_unknown(std::string word) {
    if (first_unknown) return;
    first_unknown = std::move(word);
    given_before_unknown = given.size();
}

std::optional<problem> arguments::impl::take_options() {
    for (const option& o : options) {
        if (!o.is_given) continue;
        const auto wrong = [&](const std::string& what) {
            return problem{exit_usage, o.shown + " " + what};
        };
        if (o.is_flag() && !o.values.empty()) {
            return wrong("takes no value, but has " + detail::quoted(o.values.front()));
        }
        if (o.values.size() > 1) {
            return wrong("is given " + std::to_string(o.values.size()) +
                         " times: " + detail::quoted(o.values[0]) + " and " +
                         detail::quoted(o.values[1]) + "; once is enough");
        }
        if (const auto sentence = o.take(o.is_flag() ? "" : o.values.front())) {
            return wrong(*sentence);
        }
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
    impl_->sort(words);
    if (wants_help()) return std::nullopt;
    if (impl_->first_unknown) return impl_->unknown(*impl_->first_unknown, called);
    if (impl_->lacks_value) {
        const option* const last = impl_->find(words.back());
        const std::string expected = last == nullptr ? "a value" : last->placeholder;
        return problem{exit_usage,
                       detail::quoted(words.back()) + " needs " + expected + " behind it"};
    }
    if (auto wrong = impl_->take_options()) return wrong;
    return impl_->take_places(called);
}

}  // namespace trinco::program
