// A command of the program, and the table of all of them.
//
// One object serves one invocation: declare() binds its members to options and positionals (help,
// completion and parsing all use what it declares), run() does the work.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/command_line/arguments.hpp"

namespace trinco::program {

class command {
public:
    virtual ~command() = default;
    virtual void declare(arguments& to) = 0;
    // Of a command that runs one, once it has been parsed: whether it runs none this time.
    [[nodiscard]] virtual bool only_looks() const { return false; }
    // The exit code. What goes wrong has been said by then. `words`: the user's command, what stood
    // behind "--"; empty for commands that run none.
    virtual int run(std::span<const std::string> words) = 0;
};

struct command_entry {
    std::string_view name;   // "lock", "locks"
    std::string_view verb;   // of a noun: "ls"; empty for commands without
    std::string_view usage;  // what follows the program's name: "lock NAME [options] -- COMMAND..."
    std::string_view summary;  // one line
    bool runs_a_command;       // needs "--" and words behind it
    bool hidden;               // not listed: what the program starts itself
    std::unique_ptr<command> (*make)();
    std::string_view examples = {};  // of --help: two lines that work, without "trinco "
    std::string_view notes = {};     // of --help, a paragraph a line: wrapped there
};

// In the order in which help lists them; the first verb of a noun is what the bare noun means.
[[nodiscard]] std::span<const command_entry> command_table();

// "locks show"
[[nodiscard]] std::string called(const command_entry& entry);
// The entry of a name and a verb (empty: the first of that name), or null.
[[nodiscard]] const command_entry* find_command(std::string_view name, std::string_view verb = {});
// The noun that a word stands for: itself, or its plural ("breaker") unless the word is a command;
// empty when it is none.
[[nodiscard]] std::string_view noun_of(std::string_view word);
[[nodiscard]] std::vector<std::string_view> verbs_of(std::string_view noun);

// The whole program: finds the command, parses, runs. Answers a mistake with one line that says
// what was meant:
//   trinco vesrion             there is no command "vesrion"; did you mean 'trinco version'?
//   trinco locks shwo job      ... has no verb "shwo"; did you mean 'trinco locks show'?
//   trinco locks job           ... has no verb "job"; ... did you mean 'trinco locks show job'?
//   trinco lock ls             'trinco locks ls' ...; 'trinco lock NAME -- COMMAND' runs a command
//   trinco lock job true       put the command behind --: 'trinco lock job -- true'
//   trinco locks job -- true   'trinco locks' runs no command; did you mean 'trinco lock job ...'?
//   trinco lock job            what shall run? Put it behind --: 'trinco lock job -- COMMAND'
//   trinco lock --wiat 3s ...  there is no option "--wiat"; did you mean --wait?
// A singular noun ("breaker ls") is the plural.
int run_program(std::span<const std::string> words);

}  // namespace trinco::program
