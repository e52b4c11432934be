#include "apps/trinco/command_line/command.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "apps/trinco/command_line/habits.hpp"
#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/command_line/shell_words.hpp"
#include "apps/trinco/command_line/synonyms.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/help/help.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/version.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using words_t = std::span<const std::string>;

struct invocation {
    const command_entry* entry = nullptr;
    words_t own;      // options and positionals
    words_t command;  // what stood behind --
    bool separated = false;
};

int wrong(std::string sentence) {
    return complain({exit_usage, std::move(sentence)});
}

std::string listed(std::span<const std::string_view> words) {
    std::string list;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
        list += words[i];
    }
    return list;
}

// "trinco lock NAME -- COMMAND"
std::string short_usage(const command_entry& entry, const std::string& name) {
    return "'trinco " + std::string(entry.name) + " " + name + " -- COMMAND'";
}

int no_such_command(const std::string& typed) {
    std::vector<std::string_view> known;
    for (const command_entry& entry : command_table()) {
        if (!entry.hidden) known.push_back(entry.name);
    }
    const std::string_view usual = meant_commands(typed);
    const std::string_view meant = usual.empty() ? nearest(typed, known) : "";
    const std::string sentence = "there is no command " + detail::quoted(typed) + "; ";
    if (!usual.empty()) return wrong(sentence + "did you mean " + std::string(usual) + "?");
    if (meant.empty()) return wrong(sentence + "'trinco help' lists those that there are");
    return wrong(sentence + "did you mean 'trinco " + std::string(meant) + "'?");
}

// The command that runs one, of which a noun is the plural: "lock" of "locks"; or null.
const command_entry* runner_of(std::string_view noun) {
    const command_entry* const entry = find_command(noun.substr(0, noun.size() - 1));
    return noun.ends_with('s') && entry != nullptr && entry->runs_a_command ? entry : nullptr;
}

int no_such_verb(std::string_view noun, words_t rest, words_t command, bool separated) {
    const std::string& typed = rest.front();
    if (const command_entry* const runner = runner_of(noun); runner != nullptr && separated) {
        std::vector<std::string> line = {"trinco", std::string(runner->name)};
        line.insert(line.end(), rest.begin(), rest.end());
        line.emplace_back("--");
        line.insert(line.end(), command.begin(), command.end());
        return wrong("'trinco " + std::string(noun) + "' runs no command; did you mean '" +
                     shell_words(line) + "'?");
    }
    const auto verbs = verbs_of(noun);
    const std::string_view usual = meant_verb(noun, typed);
    const std::string_view meant = usual.empty() ? nearest(typed, verbs) : usual;
    const std::string sentence =
        "'trinco " + std::string(noun) + "' has no verb " + detail::quoted(typed) + "; ";
    if (!meant.empty()) {
        return wrong(sentence + "did you mean 'trinco " + std::string(noun) + " " +
                     std::string(meant) + "'?");
    }
    if (verbs.size() == 1) return wrong(sentence + "it is " + listed(verbs));
    // Most likely the name of what is to be looked at.
    const bool is_many = typed.ends_with('*') || typed.ends_with('/');
    std::vector<std::string> line = {"trinco", std::string(noun), is_many ? "ls" : "show"};
    line.insert(line.end(), rest.begin(), rest.end());
    return wrong(sentence + "it is " + listed(verbs) + "; did you mean '" + shell_words(line) +
                 "'?");
}

// "trinco lock ls": the verb of the noun whose singular the command is.
const command_entry* meant_noun(const invocation& call) {
    if (call.separated || call.own.empty()) return nullptr;
    return find_command(std::string(call.entry->name) + "s", call.own.front());
}

// Answers a command that should run one, without "--".
int nothing_to_run(const invocation& call, const arguments& parsed,
                   const std::optional<problem>& mistake) {
    const std::string name(call.entry->name);
    if (const command_entry* const noun = meant_noun(call)) {
        return wrong("'trinco " + called(*noun) + "' " + std::string(noun->summary) + "; " +
                     short_usage(*call.entry, "NAME") + " runs a command");
    }
    if (const auto surplus = parsed.surplus()) {
        const auto at = std::find(call.own.begin(), call.own.end(), *surplus);
        std::vector<std::string> line = {"trinco", name};
        line.insert(line.end(), call.own.begin(), at);
        line.emplace_back("--");
        line.insert(line.end(), at, call.own.end());
        return wrong("put the command behind --: '" + shell_words(line) + "'");
    }
    if (mistake) return complain(*mistake);
    std::vector<std::string> line = {"trinco", name};
    line.insert(line.end(), call.own.begin(), call.own.end());
    return wrong("what shall run? Put it behind --: '" + shell_words(line) + " -- COMMAND'");
}

int run(const invocation& call) {
    const std::unique_ptr<command> made = call.entry->make();
    arguments parsed;
    made->declare(parsed);
    const auto mistake = parsed.parse(call.own, called(*call.entry));
    if (parsed.wants_help()) return print(help_on_command(*call.entry));
    const bool runs_one = call.entry->runs_a_command && !made->only_looks();
    if (runs_one && (mistake || call.command.empty())) {
        const std::string name(call.entry->name);
        const auto hint = habit_hint(name, call.own, call.command, parsed, name == "lock");
        if (hint) return wrong(*hint);
    }
    if (runs_one && call.command.empty()) {
        return nothing_to_run(call, parsed, mistake);
    }
    if (mistake) return complain(*mistake);
    if (call.separated && !runs_one) {
        return wrong("'trinco " + called(*call.entry) + "' runs no command" +
                     (call.entry->runs_a_command ? " with these options" : "") +
                     "; nothing is expected behind --");
    }
    return made->run(call.command);
}

int run_noun(std::string_view noun, invocation call) {
    const bool has_verb = !call.own.empty() && !call.own.front().starts_with('-');
    const bool wants_help =
        !call.own.empty() && (call.own.front() == "--help" || call.own.front() == "-h");
    if (wants_help) return print(help_on_noun(noun));
    if (!has_verb) {
        call.entry = find_command(noun);
        return run(call);
    }
    call.entry = find_command(noun, call.own.front());
    if (call.entry == nullptr) {
        return no_such_verb(noun, call.own, call.command, call.separated);
    }
    call.own = call.own.subspan(1);
    return run(call);
}

// Options in front of a command: those of the program itself, or a mistake.
int run_option(words_t words) {
    const std::string& first = words.front();
    const bool help = first == "--help" || first == "-h";
    if (!help && first != "--version") {
        constexpr std::array<std::string_view, 2> own = {"--help", "--version"};
        const std::string_view meant = nearest(first, own);
        return wrong("there is no option " + detail::quoted(first) + " in front of a command; " +
                     (meant.empty() ? "those of a command stand behind it"
                                    : "did you mean " + std::string(meant) + "?"));
    }
    if (words.size() > 1) {
        return wrong(detail::quoted(words[1]) +
                     " was not expected; 'trinco help' lists the commands");
    }
    return help ? print(help_overview()) : print(version_line() + "\n");
}

}  // namespace

int run_program(std::span<const std::string> words) {
    if (words.empty()) return print(first_steps());
    const std::string& first = words.front();
    if (first.starts_with('-')) return run_option(words);
    invocation call;
    const auto end = std::find(words.begin(), words.end(), "--");
    call.separated = end != words.end();
    call.own = {words.begin() + 1, end};
    if (call.separated) call.command = {end + 1, words.end()};
    if (const std::string_view noun = noun_of(first); !noun.empty()) return run_noun(noun, call);
    call.entry = find_command(first);
    if (call.entry == nullptr) return no_such_command(first);
    return run(call);
}

}  // namespace trinco::program
