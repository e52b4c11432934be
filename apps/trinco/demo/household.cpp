#include "apps/trinco/demo/household.hpp"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

std::set<::pid_t> children() {
    std::set<::pid_t> found;
    const std::unique_ptr<::DIR, int (*)(::DIR*)> all(::opendir("/proc"), ::closedir);
    while (const ::dirent* entry = all ? ::readdir(all.get()) : nullptr) {
        const std::string_view name(entry->d_name);
        ::pid_t pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc() &&
            parent_of(pid) == ::getpid()) {
            found.insert(pid);
        }
    }
    return found;
}

}  // namespace

::pid_t parent_of(::pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    // "PID (NAME) STATE PARENT ...", and a name may contain anything.
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return -1;
    std::istringstream rest(text.substr(name_end + 1));
    std::string state;
    ::pid_t parent = -1;
    rest >> state >> parent;
    return parent;
}

household::household() : strangers_(children()) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

household::~household() {
    end(2s);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

bool household::end(std::chrono::milliseconds limit) noexcept {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (true) {
        bool some = false;
        for (const ::pid_t pid : children()) {
            if (strangers_.contains(pid)) continue;
            ::kill(pid, SIGKILL);
            // It, or nothing yet; what it leaves behind becomes a child of ours by then.
            ::waitpid(pid, nullptr, WNOHANG);
            some = true;
        }
        if (!some || std::chrono::steady_clock::now() > until) return !some;
        const ::timespec moment{0, 2'000'000};
        ::nanosleep(&moment, nullptr);
    }
}

}  // namespace trinco::program::demo
