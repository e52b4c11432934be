#include "apps/trinco/demo/lock_users.hpp"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "apps/trinco/demo/demo_commands.hpp"
#include "apps/trinco/demo/gateway_server.hpp"
#include "apps/trinco/demo/wait_for_line.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "trinco/mutex.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

constexpr int between_grants_ms = 10;
constexpr auto longest_outage = 20s;

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

void tell(const std::string& line) {
    if (write_all(STDOUT_FILENO, line + "\n") != 0) std::_Exit(exit_output);
}

class hold_command final : public command {
public:
    void declare(arguments&) override {}
    int run(std::span<const std::string>) override {
        tell("holds " + variable("TRINCO_TOKEN"));
        wait_for_line();
        return exit_ok;
    }
};

class grants_command final : public command {
public:
    void declare(arguments&) override {}
    int run(std::span<const std::string>) override {
        try {
            const store at = open(variable("TRINCO_LOCKS"), all_drivers());
            session on(at);
            mutex own(on, "probe");
            while (goes_on()) {
                if (!own.try_lock_for(longest_outage)) return exit_unavailable;
                tell("granted " + std::to_string(moment_now().count()));
                own.unlock();
            }
            return exit_ok;
        } catch (const std::exception& error) {
            return complain({exit_unavailable, error.what()});
        }
    }

private:
    // After a moment; false at the end of stdin.
    static bool goes_on() {
        ::pollfd input{STDIN_FILENO, POLLIN, 0};
        return ::poll(&input, 1, between_grants_ms) == 0;
    }
};

}  // namespace

role holder_role(const std::string& lock, const std::string& label, const std::string& locks,
                 const std::filesystem::path& errors) {
    return {.words = {"lock", lock, "--label", label, "--config", "/dev/null", "--",
                      "/proc/self/exe", "demo-hold"},
            .environment = {{"TRINCO_LOCKS", locks}},
            .errors = errors};
}

role grants_role(const std::string& locks, const std::filesystem::path& errors) {
    return {.words = {"demo-grants"}, .environment = {{"TRINCO_LOCKS", locks}}, .errors = errors};
}

std::unique_ptr<command> make_demo_hold() {
    return std::make_unique<hold_command>();
}

std::unique_ptr<command> make_demo_grants() {
    return std::make_unique<grants_command>();
}

}  // namespace trinco::program::demo
