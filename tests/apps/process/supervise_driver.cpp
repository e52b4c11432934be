// Runs a command under a guardian, for supervise_test.py, which looks at both from outside.
//
//     supervise_driver [--act MS] [--end MS] [--at-act term|kill|ignore] [--keep-open FILE]
//                      [--set NAME=VALUE] [--lost-after-stop] [--renew MS] [--late MS]
//                      [--events FILE]
//                      -- COMMAND...
//
// With --renew the command is to end when nobody has asked for so long how long it may live.
// With --late the guardian has waited for so long when it is told the command.
// Writes a line for each event, with milliseconds of CLOCK_BOOTTIME, to FILE. Ends as the program
// would; a deadline that made the command end is code 76.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/supervise.hpp"

namespace {

using namespace trinco::program;
using trinco::detail::boot_clock;
using kind = guardian_event::kind_t;

struct task {
    command_spec command;
    bool is_lost_after_stop = false;
    std::chrono::milliseconds renew{0};
    std::chrono::milliseconds late{0};
    std::string events;
};

void fail(const std::string& what) {
    std::fprintf(stderr, "supervise_driver: %s\n", what.c_str());
    std::exit(exit_usage);
}

boot_clock::time_point in_ms(const std::string& text) {
    return boot_clock::now() + std::chrono::milliseconds(std::atol(text.c_str()));
}

on_deadline at_act(std::string_view word) {
    if (word == "kill") return on_deadline::kill;
    if (word == "ignore") return on_deadline::ignore;
    return on_deadline::term;
}

task read_words(int argc, char** argv) {
    task result;
    int at = 1;
    for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
        const std::string_view option = argv[at];
        if (option == "--lost-after-stop") {
            result.is_lost_after_stop = true;
            continue;
        }
        if (++at == argc) fail("a value is missing");
        const std::string value = argv[at];
        if (option == "--act") {
            result.command.until.act = in_ms(value);
        } else if (option == "--end") {
            result.command.until.end = in_ms(value);
        } else if (option == "--at-act") {
            result.command.at_act = at_act(value);
        } else if (option == "--renew") {
            result.renew = std::chrono::milliseconds(std::atol(value.c_str()));
        } else if (option == "--late") {
            result.late = std::chrono::milliseconds(std::atol(value.c_str()));
        } else if (option == "--events") {
            result.events = value;
        } else if (option == "--keep-open") {
            result.command.keep_open = ::open(value.c_str(), O_RDWR | O_CLOEXEC);
        } else if (option == "--set") {
            const std::size_t sign = value.find('=');
            result.command.environment.emplace_back(value.substr(0, sign), value.substr(sign + 1));
        } else {
            fail("there is no option " + std::string(option));
        }
    }
    for (++at; at < argc; ++at) result.command.words.emplace_back(argv[at]);
    return result;
}

constexpr std::array<const char*, 9> names = {"started", "refused", "stopped", "continued", "acted",
                                              "killed",  "ended",   "alone",   "gone"};

}  // namespace

int main(int argc, char** argv) {
    signal_desk desk;
    auto started = guardian::start();
    if (const auto* const wrong = std::get_if<problem>(&started)) return complain(*wrong);
    guardian& over = std::get<guardian>(started);
    const task task = read_words(argc, argv);

    supervision how;
    std::FILE* const events = task.events.empty() ? nullptr : std::fopen(task.events.c_str(), "ae");
    const auto note = [events](const char* what, int number, int pid) {
        if (events == nullptr) return;
        const auto now = boot_clock::now().time_since_epoch();
        std::fprintf(events, "%s %d %d %lld\n", what, number, pid,
                     static_cast<long long>(now / std::chrono::milliseconds(1)));
        std::fflush(events);
    };
    ::poll(nullptr, 0, static_cast<int>(task.late.count()));
    note("told", 0, 0);  // deadlines count from here
    how.on_event = [&](const guardian_event& event) {
        note(names.at(static_cast<std::size_t>(event.kind)), event.number,
             event.kind == kind::ended ? static_cast<int>(event.alive) : event.pid);
    };
    how.before_stop = [&] { note("stopping", 0, 0); };
    how.still_good = [&] { return !task.is_lost_after_stop; };
    if (task.renew.count() > 0) {
        how.every = task.renew / 5;
        how.until = [&] { return deadlines{.end = boot_clock::now() + task.renew}; };
    }
    const command_end end = supervise(over, task.command, desk, how);
    if (end.acted) return exit_lost;
    return finish(end, task.command);
}
