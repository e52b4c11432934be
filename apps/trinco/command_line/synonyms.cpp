#include "apps/trinco/command_line/synonyms.hpp"

#include <array>

namespace trinco::program {
namespace {

struct verb_synonym {
    std::string_view noun;
    std::string_view typed;
    std::string_view meant;
};
constexpr std::array verbs{
    verb_synonym{"locks", "list", "ls"},          verb_synonym{"locks", "status", "ls"},
    verb_synonym{"locks", "get", "show"},         verb_synonym{"locks", "info", "show"},
    verb_synonym{"locks", "follow", "watch"},     verb_synonym{"locks", "release", "break"},
    verb_synonym{"locks", "unlock", "break"},     verb_synonym{"locks", "free", "break"},
    verb_synonym{"locks", "delete", "break"},     verb_synonym{"locks", "rm", "break"},
    verb_synonym{"locks", "remove", "break"},     verb_synonym{"locks", "kill", "break"},
    verb_synonym{"breakers", "list", "ls"},       verb_synonym{"breakers", "status", "ls"},
    verb_synonym{"breakers", "get", "show"},      verb_synonym{"breakers", "info", "show"},
    verb_synonym{"breakers", "follow", "watch"},  verb_synonym{"breakers", "open", "trip"},
    verb_synonym{"breakers", "close", "reset"},   verb_synonym{"breakers", "enable", "resume"},
    verb_synonym{"breakers", "delete", "forget"}, verb_synonym{"breakers", "rm", "forget"},
    verb_synonym{"breakers", "remove", "forget"},
};

struct command_synonym {
    std::string_view typed;
    std::string_view meant;
};
constexpr std::array commands{
    command_synonym{"status", "'trinco locks' or 'trinco breakers'"},
    command_synonym{"list", "'trinco locks' or 'trinco breakers'"},
    command_synonym{"ls", "'trinco locks' or 'trinco breakers'"},
    command_synonym{"ps", "'trinco locks'"},
    command_synonym{"unlock", "'trinco locks break'"},
    command_synonym{"release", "'trinco locks break'"},
    command_synonym{"break", "'trinco locks break'"},
    command_synonym{"trip", "'trinco breakers trip'"},
    command_synonym{"reset", "'trinco breakers reset'"},
};

}  // namespace

std::string_view meant_verb(std::string_view noun, std::string_view typed) noexcept {
    for (const verb_synonym& one : verbs) {
        if (one.noun == noun && one.typed == typed) return one.meant;
    }
    return {};
}

std::string_view meant_commands(std::string_view typed) noexcept {
    for (const command_synonym& one : commands) {
        if (one.typed == typed) return one.meant;
    }
    return {};
}

}  // namespace trinco::program
