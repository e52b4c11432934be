#include "apps/trinco/help/help.hpp"

#include <algorithm>
#include <vector>

#include "apps/trinco/output/wrapped.hpp"

namespace trinco::program {
namespace {

constexpr std::string_view intro =
    "Trinco: circuit breakers and locks, shared by all processes of a machine"
#if TRINCO_REDIS
    ".\nWith Redis or Valkey breakers are shared by a whole fleet: --breakers redis://HOST"
#endif
#if TRINCO_ETCD
    ".\nWith etcd locks are shared by a whole fleet: --locks etcd://HOST"
#endif
#if TRINCO_CONSUL
    ".\nWith Consul locks are shared by a whole fleet: --locks consul://HOST"
#endif
    ".\n";

constexpr std::string_view outro =
    R"(topics, with 'trinco help TOPIC'
  options      every option of a circuit breaker: unit, default, range, why, what to watch
  urls         where breakers and locks can be kept
  config       the file trinco.toml
  environment  the variables that count
  exit-codes   how the program ends, and what it means
  json         what -o json prints

'trinco COMMAND --help' explains a command. The manual of the library is its headers, beginning
with include/trinco/circuit_breaker.hpp and mutex.hpp.
)";

struct line {
    std::string left;
    std::string right;
};

std::string joined(const std::vector<std::string_view>& words) {
    std::string list;
    for (const std::string_view word : words)
        list += (list.empty() ? "" : ", ") + std::string(word);
    return list;
}

// A noun whose only verb is no choice is listed as the two words that one types.
bool has_choice(const command_entry& entry) {
    return !entry.verb.empty() && verbs_of(entry.name).size() > 1;
}

bool is_first_of_name(const command_entry& entry) {
    return find_command(entry.name) == &entry;
}

std::string section(const std::string& title, const std::vector<line>& lines) {
    if (lines.empty()) return "";
    constexpr std::size_t around = 5;  // spaces before the left column and behind it
    std::size_t widest = 0;
    for (const line& l : lines) widest = std::max(widest, l.left.size());
    std::string text = title + "\n";
    for (const line& l : lines) {
        text += "  " + l.left + std::string(widest - l.left.size() + 3, ' ') +
                wrapped(l.right, widest + around) + "\n";
    }
    return text + "\n";
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

std::string examples_of(const command_entry& entry) {
    std::string text;
    for (const std::string_view example : lines_of(entry.examples)) {
        text += "  trinco " + std::string(example) + "\n";
    }
    return text.empty() ? text : "\nexamples\n" + text;
}

// "runs a command" -> "Runs a command."
std::string sentence(std::string_view summary) {
    std::string text(summary);
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
        text[0] = static_cast<char>(text[0] - 'a' + 'A');
    }
    return text + ".";
}

}  // namespace

std::string_view first_steps() {
    return "trinco demo                        locks and a circuit breaker, in a minute\n"
           "trinco lock nightly -- echo hello  one at a time, on this machine\n"
           "trinco call payments -- true       not while it fails\n"
           "trinco locks                       who holds what; 'trinco help' has the rest\n";
}

std::string help_overview() {
    std::vector<line> runners;
    std::vector<line> nouns;
    std::vector<line> others;
    for (const command_entry& entry : command_table()) {
        if (entry.hidden) continue;
        const std::string summary(entry.summary);
        if (entry.runs_a_command) {
            runners.push_back({"trinco " + std::string(entry.usage), summary});
        } else if (!has_choice(entry)) {
            others.push_back({"trinco " + called(entry), summary});
        } else if (is_first_of_name(entry)) {
            nouns.push_back({"trinco " + std::string(entry.name), joined(verbs_of(entry.name))});
        }
    }
    return std::string(intro) + "\n" + section("run a command, which stands behind --", runners) +
           section("look and manage; without a verb, the first one", nouns) +
           section("others", others) + std::string(outro);
}

std::string help_on_command(const command_entry& entry) {
    const std::unique_ptr<command> made = entry.make();
    arguments known;
    made->declare(known);
    std::string text =
        "usage: trinco " + std::string(entry.usage) + "\n" + sentence(entry.summary) + "\n\n";
    for (const std::string_view paragraph : lines_of(entry.notes)) {
        text += wrapped(paragraph) + "\n\n";
    }
    return text + known.help_text() + examples_of(entry);
}

std::string help_on_noun(std::string_view noun) {
    const auto verbs = verbs_of(noun);
    if (verbs.size() == 1) return help_on_command(*find_command(noun));
    std::vector<line> lines;
    for (const std::string_view verb : verbs) {
        const command_entry* const entry = find_command(noun, verb);
        lines.push_back({"trinco " + std::string(entry->usage), std::string(entry->summary)});
    }
    const std::string name(noun);
    return section("usage: trinco " + name + " [VERB]", lines) +
           "Without a verb: " + std::string(verbs.front()) + ". 'trinco " + name +
           " VERB --help' explains one with its options.\n";
}

}  // namespace trinco::program
