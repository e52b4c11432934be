#include "apps/trinco/process/command_start.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

// A command with everything that its exec needs.
struct new_program {
    std::string file;  // empty: looked for by the first of the words
    std::vector<char*> words;
    std::vector<char*> environment;
};

new_program program_of(const new_command& what) {
    new_program all;
    for (const char* word : what.words) all.words.push_back(const_cast<char*>(word));
    all.words.push_back(nullptr);
    all.environment = merged(what.environment);
    all.file = found_in_path(what.words.front());
    return all;
}

void be_a_command(::pid_t guardian) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != guardian) ::_exit(SIGKILL + 128);  // it died before the line above
    restore_signals_at_start();
}

[[noreturn]] void become(const new_program& what, int keep_open, int answer) {
    if (keep_open >= 0) keep(keep_open);
    if (!what.file.empty()) {
        ::execve(what.file.c_str(), what.words.data(), what.environment.data());
    }
    // What could not be run, or has no first line that says by what, is for this one.
    ::execvpe(what.words[0], what.words.data(), what.environment.data());
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(answer, &error, sizeof error);
    ::_exit(127);
}

}  // namespace

// Not copying our memory for a process that gives it up at once makes starting a third faster. We
// are held until its exec; nothing of the user runs in that time.
starting start_command(const new_command& what) {
    if (what.words.empty()) return {.error = EINVAL};
    const new_program all = program_of(what);
    std::array<int, 2> answer{};
    if (::pipe2(answer.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {.error = errno};

    const ::pid_t guardian = ::getpid();
    const ::pid_t process = ::vfork();
    if (process == 0) {
        be_a_command(guardian);
        become(all, what.keep_open, answer[1]);
    }
    const int error = errno;
    ::close(answer[1]);
    if (process < 0) {
        ::close(answer[0]);
        return {.error = error};
    }
    return {.process = process, .answer = answer[0]};
}

starting start_when_told(const std::function<const new_command*()>& told) {
    std::array<int, 2> answer{};
    if (::pipe2(answer.data(), O_CLOEXEC | O_NONBLOCK) != 0) return {.error = errno};

    new_program all;                    // made by that process, in our memory
    volatile bool is_becoming = false;  // as is this said
    const ::pid_t guardian = ::getpid();
    // What is thrown there must not unwind our stack: it would end that process alone.
    const auto wait_and_become = [&]() noexcept {
        be_a_command(guardian);
        const new_command* const what = told();
        if (what == nullptr) ::_exit(0);
        all = program_of(*what);
        is_becoming = true;
        become(all, what->keep_open, answer[1]);
    };
    const ::pid_t process = ::vfork();
    if (process == 0) wait_and_become();
    ::close(answer[1]);
    if (is_becoming) return {.process = process, .answer = answer[0]};
    ::close(answer[0]);
    if (process > 0) ::kill(process, SIGKILL);  // should it live, in a memory of its own: see vfork
    while (process > 0 && ::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
    }
    return {};
}

}  // namespace trinco::program
