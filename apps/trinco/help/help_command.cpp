#include "apps/trinco/help/help_command.hpp"

#include <algorithm>

#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/help/help.hpp"
#include "apps/trinco/output/print.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

// Topics, and commands that are listed.
std::vector<std::string> subjects() {
    std::vector<std::string> words(help_topics().begin(), help_topics().end());
    for (const command_entry& entry : command_table()) {
        const bool known = std::find(words.begin(), words.end(), entry.name) != words.end();
        if (!entry.hidden && !known) words.emplace_back(entry.name);
    }
    return words;
}

int no_such(const std::string& what, const std::string& typed, std::string_view meant,
            const std::string& otherwise) {
    return complain({exit_usage, "there is no " + what + " " + detail::quoted(typed) + "; " +
                                     (meant.empty() ? otherwise
                                                    : "did you mean 'trinco help " +
                                                          std::string(meant) + "'?")});
}

int no_such_subject(const std::string& typed) {
    const auto words = subjects();
    const std::vector<std::string_view> known(words.begin(), words.end());
    return no_such("topic or command", typed, nearest(typed, known),
                   "'trinco help' lists what there is");
}

int explain_verb(std::string_view noun, const std::string& verb) {
    if (const command_entry* const entry = find_command(noun, verb)) {
        return print(help_on_command(*entry));
    }
    const auto verbs = verbs_of(noun);
    const std::string_view meant = nearest(verb, verbs);
    const std::string whole(noun);
    return no_such("verb", verb, meant.empty() ? "" : whole + " " + std::string(meant),
                   "'trinco help " + whole + "' lists those of " + whole);
}

class help_command final : public command {
public:
    void declare(arguments& to) override {
        using need = arguments::need;
        to.positional("TOPIC", subject_, "a topic or a command", need::optional);
        to.positional("VERB", verb_, "of a command that has some", need::optional);
        to.complete_with("TOPIC", subjects);
        to.complete_with("VERB", [this] {
            const auto verbs = verbs_of(noun_of(subject_));
            return std::vector<std::string>(verbs.begin(), verbs.end());
        });
    }

    int run(std::span<const std::string>) override {
        if (subject_.empty()) return print(help_overview());
        // Before the commands: "config" is both, and 'trinco config --help' explains the other.
        const std::string topic = help_on_topic(subject_);
        if (verb_.empty() && !topic.empty()) return print(topic);
        if (const std::string_view noun = noun_of(subject_); !noun.empty()) {
            return verb_.empty() ? print(help_on_noun(noun)) : explain_verb(noun, verb_);
        }
        const command_entry* const entry = find_command(subject_);
        if (entry == nullptr && topic.empty()) return no_such_subject(subject_);
        if (!verb_.empty()) {
            return complain({exit_usage, detail::quoted(verb_) +
                                             " was not expected behind 'trinco " + "help " +
                                             subject_ + "'"});
        }
        return print(help_on_command(*entry));
    }

private:
    std::string subject_;
    std::string verb_;
};

}  // namespace

std::unique_ptr<command> make_help() {
    return std::make_unique<help_command>();
}

}  // namespace trinco::program
