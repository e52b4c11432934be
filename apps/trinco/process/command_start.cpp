#include "apps/trinco/process/command_start.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include "apps/trinco/process/signals_at_start.hpp"

namespace trinco::program {

namespace {

// Scripts name single digits, shells keep their own from 10 and at 255 on.
constexpr int first_kept_descriptor = 200;

std::string_view name_of(std::string_view entry) {
    return entry.substr(0, entry.find('='));
}

// The environment that we were given with the additions, which replace variables of the same name.
std::vector<char*> merged(const std::vector<const char*>& added) {
    std::vector<char*> all;
    for (char** entry = ::environ; *entry != nullptr; ++entry) {
        bool is_left_out = false;
        for (const char* addition : added) is_left_out |= name_of(addition) == name_of(*entry);
        if (!is_left_out) all.push_back(*entry);
    }
    for (const char* addition : added) all.push_back(const_cast<char*>(addition));
    all.push_back(nullptr);
    return all;
}

// The first of the folders of PATH that has this program; empty where only execvpe knows. That one
// tries each folder by beginning a new program, which takes ten times as long as asking.
std::string found_in_path(std::string_view name) {
    const char* const path = ::getenv("PATH");
    if (path == nullptr || name.empty() || name.find('/') != std::string_view::npos) return {};
    std::string file;
    for (std::string_view rest = path; !rest.empty();) {
        const auto folder = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
        if (folder.empty()) return {};  // the current folder
        file.assign(folder).append("/").append(name);
        if (::faccessat(AT_FDCWD, file.c_str(), X_OK, AT_EACCESS) == 0) return file;
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return {};
    }
    return {};
}

void keep(int descriptor) {
    if (::fcntl(descriptor, F_DUPFD, first_kept_descriptor) >= 0) return;
    ::fcntl(descriptor, F_DUPFD, 3);  // a limit of open files below 200
}

struct new_program {
    const char* file;  // empty: looked for by the first of the words
    char* const* words;
    char* const* environment;
};

[[noreturn]] void become(const new_program& what, int keep_open, ::pid_t guardian, int answer) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != guardian) ::_exit(SIGKILL + 128);  // it died before the line above
    if (keep_open >= 0) keep(keep_open);
    restore_signals_at_start();
    if (*what.file != '\0') ::execve(what.file, what.words, what.environment);
    // What could not be run, or has no first line that says by what, is for this one.
    ::execvpe(what.words[0], what.words, what.environment);
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(answer, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

starting start_command(const std::vector<const char*>& words,
                       const std::vector<const char*>& environment, int keep_open) {
    if (words.empty()) return {.error = EINVAL};
    std::vector<char*> arguments;
    for (const char* word : words) arguments.push_back(const_cast<char*>(word));
    arguments.push_back(nullptr);
    const std::vector<char*> variables = merged(environment);
    const std::string file = found_in_path(words.front());
    std::array<int, 2> answer{};
    if (::pipe2(answer.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {.error = errno};

    const ::pid_t guardian = ::getpid();
    // Not copying our memory for a process that gives it up at once makes starting a third faster.
    // We are held until its exec; nothing of the user runs in that time.
    const ::pid_t process = ::vfork();
    if (process == 0) {
        become({file.c_str(), arguments.data(), variables.data()}, keep_open, guardian, answer[1]);
    }
    const int error = errno;
    ::close(answer[1]);
    if (process < 0) {
        ::close(answer[0]);
        return {.error = error};
    }
    ::setpgid(process, process);  // whoever comes first: the child, or a signal to its group
    return {.process = process, .answer = answer[0]};
}

}  // namespace trinco::program
