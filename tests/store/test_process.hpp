// Processes that tests begin: where their programs are, ports that they may have, and running them.
// Whatever cannot be done in 30 s throws std::runtime_error.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trinco::detail::test {

// A program of PATH, else of the folder in which `make servers` keeps what it fetched and built.
[[nodiscard]] std::optional<std::string> find_test_program(const std::string& name);
// Of the environment; empty when it is not set.
[[nodiscard]] std::string environment_variable(const char* name);

// Of the loopback, each another one, below those that the system gives to outgoing connections.
[[nodiscard]] std::vector<std::uint16_t> free_ports(std::size_t many);
[[nodiscard]] ::sockaddr_in loopback(std::uint16_t port);

// The new process, without input; its outputs go to this descriptor. It ends with the thread that
// began it.
[[nodiscard]] ::pid_t launch(std::vector<std::string> words, int output);

struct process_output {
    int code = -1;
    std::string text;  // both outputs together
};
[[nodiscard]] process_output run_to_end(std::vector<std::string> words);

// Waits for it, at most 30 s; throws what was waited for.
void wait_for(const std::string& what, const std::function<bool()>& is_so);

}  // namespace trinco::detail::test
