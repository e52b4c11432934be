#include "apps/trinco/process/outer_proc.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "apps/trinco/process/proc_files.hpp"

namespace trinco::program {

namespace {

struct seen {
    ::pid_t number = 0;  // of the outer namespace, as is
    ::pid_t parent = 0;
    ::pid_t ours = 0;
    char state = '\0';
};

// What follows "NAME:\t" in a status of proc(5), up to the end of the line.
std::string_view field(std::string_view status, std::string_view name) {
    const std::size_t at = status.find(name);
    if (at == std::string_view::npos) return {};
    const std::size_t begin = at + name.size();
    return status.substr(begin, status.find('\n', begin) - begin);
}

// The numbers of a line, separated by tabs.
std::vector<::pid_t> numbers_of(std::string_view line) {
    std::vector<::pid_t> numbers;
    while (!line.empty()) {
        ::pid_t number = 0;
        std::from_chars(line.data(), line.data() + line.size(), number);
        numbers.push_back(number);
        line.remove_prefix(std::min(line.find('\t'), line.size() - 1) + 1);
    }
    return numbers;
}

// What /proc calls this process; 0: it does not know it.
::pid_t own_number() {
    std::array<char, 16> name{};
    const ::ssize_t size = ::readlink("/proc/self", name.data(), name.size());
    ::pid_t number = 0;
    if (size > 0) std::from_chars(name.data(), name.data() + size, number);
    return number;
}

// This process and all below it, parents before children.
std::vector<seen> family() {
    const auto own = proc_file("/proc/self/status");
    if (!own) return {};
    // One number for each namespace, from that of /proc inwards; a process further in has more.
    const std::size_t level = numbers_of(field(*own, "\nNSpid:\t")).size();
    std::vector<seen> all;
    for (const ::pid_t number : proc_numbers("/proc")) {
        const auto status = proc_file("/proc/" + std::to_string(number) + "/status");
        if (!status) continue;
        const auto numbers = numbers_of(field(*status, "\nNSpid:\t"));
        const auto parent = numbers_of(field(*status, "\nPPid:\t"));
        const auto state = field(*status, "\nState:\t");
        if (level == 0 || numbers.size() < level || parent.empty() || state.empty()) continue;
        all.push_back({number, parent.front(), numbers[level - 1], state.front()});
    }
    std::vector<seen> found;
    const ::pid_t self = own_number();
    for (const seen& one : all) {
        if (one.number == self) found.push_back(one);
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
        const ::pid_t of = found[i].number;
        for (const seen& one : all) {
            if (one.parent == of) found.push_back(one);
        }
    }
    return found;
}

}  // namespace

bool is_proc_of_others() {
    const ::pid_t number = own_number();
    return number != 0 && number != ::getpid();
}

std::vector<::pid_t> descendants_in_outer_proc(::pid_t root) {
    const std::vector<seen> all = family();
    std::vector<::pid_t> parents;  // of the outer namespace
    std::vector<::pid_t> found;
    for (const seen& one : all) {
        const bool is_below =
            std::find(parents.begin(), parents.end(), one.parent) != parents.end();
        if (is_below) found.push_back(one.ours);
        if (is_below || one.ours == root) parents.push_back(one.number);
    }
    return found;
}

char state_in_outer_proc(::pid_t process) {
    for (const seen& one : family()) {
        if (one.ours == process) return one.state;
    }
    return '\0';
}

}  // namespace trinco::program
