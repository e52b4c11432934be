#include "apps/trinco/process/descendants.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "apps/trinco/process/outer_proc.hpp"
#include "apps/trinco/process/proc_files.hpp"
#include "core/loop.hpp"

namespace trinco::program {

namespace {

using detail::boot_clock;
using namespace std::chrono_literals;

struct status {
    char state = '\0';
    ::pid_t parent = 0;
};

// "pid (name) state parent ...", where the name may hold anything.
status status_of(::pid_t process) {
    const auto text = proc_file("/proc/" + std::to_string(process) + "/stat");
    if (!text) return {};
    const std::size_t name_end = text->rfind(") ");
    if (name_end == std::string::npos || name_end + 4 >= text->size()) return {};
    status result{.state = (*text)[name_end + 2]};
    std::from_chars(text->data() + name_end + 4, text->data() + text->size(), result.parent);
    return result;
}

// Appends the children of one process; false when the kernel keeps no list.
bool add_children(::pid_t parent, std::vector<::pid_t>& to) {
    const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
    bool has_list = false;
    for (const ::pid_t task : proc_numbers(tasks)) {
        const auto list = proc_file(tasks + '/' + std::to_string(task) + "/children");
        if (!list) continue;
        has_list = true;
        const char* at = list->data();
        const char* const end = at + list->size();
        while (at < end) {
            ::pid_t child = 0;
            const auto [after, error] = std::from_chars(at, end, child);
            if (error == std::errc()) to.push_back(child);
            at = std::max(after, at) + 1;
        }
    }
    return has_list;
}

void say_what_stays(const std::vector<::pid_t>& processes) {
    std::string line = "trinco: killed, but not yet ended:";
    for (const ::pid_t process : processes) {
        const char state = state_of(process);
        if (state == 'Z' || state == '\0') continue;
        line += " process " + std::to_string(process) + " (state " + state + ")";
    }
    line += "; still trying\n";
    // Nobody may read standard error; a killer must not wait for that.
    ::pollfd output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&output, 1, 0) != 1 || (output.revents & POLLOUT) == 0) return;
    [[maybe_unused]] const auto written =
        ::write(STDERR_FILENO, line.data(), std::min<std::size_t>(line.size(), 512));
}

// Until a child changes its state, or for so long.
void wait_for_child(boot_clock::duration limit) {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    const timespec time{.tv_sec = 0, .tv_nsec = limit.count()};
    ::sigtimedwait(&child, nullptr, &time);
}

// Whether there are children left.
bool reap(const ending& how) {
    for (;;) {
        int status = 0;
        const ::pid_t process = ::waitpid(-1, &status, WNOHANG);
        if (process < 0 && errno != EINTR) return false;
        if (process == 0) return true;
        if (process > 0 && how.on_reaped) how.on_reaped(process, status);
    }
}

std::vector<::pid_t> without_strangers(std::vector<::pid_t> processes, const ending& how) {
    if (how.strangers.empty()) return processes;
    std::vector<::pid_t> theirs = how.strangers;
    for (const ::pid_t stranger : how.strangers) {
        const std::vector<::pid_t> below = descendants_of(stranger);
        theirs.insert(theirs.end(), below.begin(), below.end());
    }
    std::erase_if(processes, [&](::pid_t process) {
        return std::find(theirs.begin(), theirs.end(), process) != theirs.end();
    });
    return processes;
}

}  // namespace

std::vector<::pid_t> descendants_of(::pid_t root) {
    if (is_proc_of_others()) return descendants_in_outer_proc(root);
    std::vector<::pid_t> found;
    if (!add_children(root, found)) {
        return state_of(root) == '\0' ? found : descendants_by_scan(root);
    }
    for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i], found);
    return found;
}

std::vector<::pid_t> descendants_by_scan(::pid_t root) {
    std::vector<std::pair<::pid_t, ::pid_t>> parent_and_child;
    for (const ::pid_t process : proc_numbers("/proc")) {
        parent_and_child.emplace_back(status_of(process).parent, process);
    }
    std::vector<::pid_t> found;
    ::pid_t parent = root;
    for (std::size_t next = 0;; ++next) {
        for (const auto& [of, child] : parent_and_child) {
            if (of == parent) found.push_back(child);
        }
        if (next == found.size()) return found;
        parent = found[next];
    }
}

char state_of(::pid_t process) {
    if (is_proc_of_others()) return state_in_outer_proc(process);
    return status_of(process).state;
}

void signal_descendants(int number, ::pid_t group) {
    // Again until there is nobody new: one that was just being forked got its parent's place, not
    // its parent's signal. The bound is for a family that forks faster than we look.
    std::vector<::pid_t> known;
    for (int look = 0; look < 20; ++look) {
        bool is_new = false;
        for (const ::pid_t process : descendants_of(::getpid())) {
            if (std::find(known.begin(), known.end(), process) != known.end()) continue;
            known.push_back(process);
            is_new = true;
            if (group == 0 || ::getpgid(process) != group) ::kill(process, number);
        }
        if (!is_new) return;
    }
}

void end_all(const ending& how) {
    const auto begin = boot_clock::now();
    boot_clock::duration pause = 500us;
    bool said = false;
    int empty_looks = 0;  // a single one may have missed a process that came just then
    ::pid_t group = how.group;
    for (;;) {
        if (group > 0) ::kill(-group, SIGKILL);
        group = 0;  // its number may belong to others once its leader is reaped
        const std::vector<::pid_t> left = without_strangers(descendants_of(::getpid()), how);
        for (const ::pid_t process : left) ::kill(process, SIGKILL);
        empty_looks = left.empty() ? empty_looks + 1 : 0;
        if (!reap(how) || (empty_looks >= 2 && !how.strangers.empty())) return;
        if (!said && boot_clock::now() - begin > 2s) {
            say_what_stays(left);
            said = true;
        }
        wait_for_child(pause);
        pause = std::min<boot_clock::duration>(pause * 2, 50ms);
    }
}

}  // namespace trinco::program
