#include <algorithm>

#include "apps/trinco/completion/completion_commands.hpp"
#include "apps/trinco/help/help.hpp"
#include "apps/trinco/output/print.hpp"

namespace trinco::program {
namespace {

using words_t = std::span<const std::string>;

std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const command_entry& entry : command_table()) {
        if (entry.hidden || std::find(names.begin(), names.end(), entry.name) != names.end())
            continue;
        names.emplace_back(entry.name);
    }
    return names;
}

// Of the options and positionals of a command, behind the words before.
std::vector<std::string> own_candidates(const command_entry& entry, words_t before,
                                        const std::string& last) {
    const std::unique_ptr<command> made = entry.make();
    arguments known;
    made->declare(known);
    // Whatever is wrong so far: what was understood may say which store is asked for live names.
    const bool value_due = !before.empty() && known.takes_value(before.back());
    static_cast<void>(known.parse(value_due ? before.first(before.size() - 1) : before));
    if (value_due) return known.candidates_for(before.back());
    if (const auto equals = last.find('='); last.starts_with("--") && equals != std::string::npos) {
        std::vector<std::string> whole;
        for (const std::string& value : known.candidates_for(last.substr(0, equals))) {
            whole.push_back(last.substr(0, equals + 1) + value);
        }
        return whole;
    }
    if (last.starts_with('-')) return known.option_names();
    return known.candidates_for(known.positional_count());
}

std::vector<std::string> candidates(words_t before, const std::string& last) {
    if (before.empty()) {
        if (last.starts_with('-')) return {"--help", "--version"};
        return command_names();
    }
    if (std::find(before.begin(), before.end(), "--") != before.end()) return {};
    const std::string_view noun = noun_of(before.front());
    if (noun.empty()) {
        const command_entry* const entry = find_command(before.front());
        if (entry == nullptr) return {};
        auto own = own_candidates(*entry, before.subspan(1), last);
        if (entry->runs_a_command && last.starts_with('-')) own.emplace_back("--");
        return own;
    }
    if (before.size() == 1 && !last.starts_with('-')) {
        const auto verbs = verbs_of(noun);
        return {verbs.begin(), verbs.end()};
    }
    const bool has_verb = before.size() > 1 && !before[1].starts_with('-');
    const command_entry* const entry =
        has_verb ? find_command(noun, before[1]) : find_command(noun);
    if (entry == nullptr) return {};
    return own_candidates(*entry, before.subspan(has_verb ? 2 : 1), last);
}

class complete_command final : public command {
public:
    void declare(arguments&) override {}
    int run(std::span<const std::string> words) override {
        std::string lines;
        for (const std::string& one : completions(words)) lines += one + "\n";
        return print(lines);
    }
};

}  // namespace

std::vector<std::string> completions(std::span<const std::string> words) {
    if (words.empty()) return {};
    const std::string& last = words.back();
    auto all = candidates(words.first(words.size() - 1), last);
    std::erase_if(all, [&](const std::string& one) { return !one.starts_with(last); });
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

std::unique_ptr<command> make_complete() {
    return std::make_unique<complete_command>();
}

}  // namespace trinco::program
