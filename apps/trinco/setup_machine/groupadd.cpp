#include "apps/trinco/setup_machine/groupadd.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "apps/trinco/exit_codes.hpp"

namespace trinco::program {
namespace {

constexpr std::array<const char*, 2> places = {"/usr/sbin/groupadd", "/sbin/groupadd"};

const char* find_groupadd() {
    for (const char* const place : places) {
        if (::access(place, X_OK) == 0) return place;
    }
    return nullptr;
}

}  // namespace

std::optional<problem> add_group(const std::string& name, const std::filesystem::path& root) {
    const char* const program = find_groupadd();
    if (program == nullptr) {
        return problem{exit_unavailable, "this system has no groupadd; make the group " + name +
                                             " in its own way, and do this again"};
    }
    std::vector<std::string> words = {program, "--system"};
    if (root != "/") words.insert(words.end(), {"--prefix", root.native()});
    words.push_back(name);
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::pid_t pid = 0;
    const int error = ::posix_spawn(&pid, program, nullptr, nullptr, pointers.data(), environ);
    if (error != 0) {
        return problem{exit_unavailable,
                       std::string(program) + ": " + std::generic_category().message(error)};
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
    return problem{exit_unavailable, std::string(program) + " could not make the group " + name};
}

}  // namespace trinco::program
