#include "apps/trinco/command_line/confirmation.hpp"

#include <unistd.h>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t shown = 256;

// Empty at the end of the input. Reads no further than the line.
std::string line_of_terminal() {
    std::string line;
    char c = 0;
    while (line.size() < shown && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n') line += c;
    return line;
}

}  // namespace

std::optional<problem> not_confirmed(const confirmation& c) {
    if (c.given) {
        if (*c.given == c.name) return std::nullopt;
        return problem{exit_usage, "--confirm says " + detail::quoted(*c.given, shown) +
                                       ", but the name is " + detail::quoted(c.name, shown) +
                                       "; nothing was done"};
    }
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) {
        return problem{exit_usage, c.what + "; nobody can be asked here: say --confirm " + c.name +
                                       " to go on"};
    }
    const std::string question = c.severe ? "Type its name to go on: " : "Go on? [y/N] ";
    static_cast<void>(write_all(STDERR_FILENO, "trinco: " + c.what + ". " + question));
    const std::string said = line_of_terminal();
    const bool yes = c.severe ? said == c.name : said == "y" || said == "Y" || said == "yes";
    if (yes) return std::nullopt;
    return problem{exit_usage, "not confirmed; nothing was done"};
}

}  // namespace trinco::program
