#include "apps/trinco/help.hpp"

#include <array>

namespace trinco::program {
namespace {

constexpr std::string_view overview =
    R"(Trinco: circuit breakers and locks, shared by every process of a fleet.

commands
  trinco version [-o table|json]   which version this is and how it was built
  trinco help [TOPIC]              this text, or one of the topics

topics
  options      every option of a circuit breaker: unit, default, range, why, what to watch
  urls         where breakers and locks can be kept
  exit-codes   how the program ends, and what it means

This version is the library; the program explains it. The manual is the headers:
include/trinco/circuit_breaker.hpp, breaker_options.hpp, session.hpp, mutex.hpp.
)";

constexpr std::string_view urls =
    R"(A store is opened by its URL: trinco::open(url, {drivers...}), see include/trinco/store.hpp.

  URL              breakers  locks  for
  memory:          yes       yes    one process; tests
  memory:NAME      yes       yes    the same, several apart from each other
)"
#if TRINCO_LOCAL
    R"(  local:           yes       yes    all processes of a user on this machine: services, jobs,
                                    cron; a file in the user's home, /var/lib/trinco for root
  local:/FILE.db   yes       yes    in a file that users can share and whose folder must exist
)"
#endif
    R"(
A URL is opened with the driver of its scheme, such as trinco::drivers::memory(). Other schemes are
refused with a sentence that says which drivers were given.
No store of this version is shared by several machines.
)";

constexpr std::string_view exit_codes =
    R"(code  meaning
0     done
64    the command line is wrong; one line on standard error says what was meant
74    standard output could not be written

Data goes to standard output, messages to standard error, each beginning with "trinco: ".
)";

constexpr std::array<std::string_view, 3> topics = {"options", "urls", "exit-codes"};

}  // namespace

std::string_view first_steps() {
    return "trinco help           what there is\n"
           "trinco help options   every option of a circuit breaker\n"
           "trinco help urls      where breakers and locks can be kept\n"
           "trinco version        which version this is\n";
}

std::span<const std::string_view> help_topics() {
    return topics;
}

std::string help_on(std::string_view topic) {
    if (topic.empty()) return std::string(overview);
    if (topic == "options") return help_options();
    if (topic == "urls") return std::string(urls);
    if (topic == "exit-codes") return std::string(exit_codes);
    return {};
}

}  // namespace trinco::program
