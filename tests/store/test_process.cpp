#include "tests/store/test_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <utility>

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto patience = 30s;

bool is_program(const fs::path& p) {
    return ::access(p.c_str(), X_OK) == 0 && !fs::is_directory(p);
}

std::vector<fs::path> folders_of_programs() {
    std::vector<fs::path> folders;
    const std::string path = environment_variable("PATH");
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        folders.emplace_back(path.substr(begin, end - begin));
        begin = end + 1;
    }
    const std::string cache = environment_variable("XDG_CACHE_HOME");
    const fs::path home =
        cache.empty() ? fs::path(environment_variable("HOME")) / ".cache" : fs::path(cache);
    folders.push_back(home / "trinco" / "servers" / "bin");
    return folders;
}

bool is_free(std::uint16_t port) {
    const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto at = loopback(port);
    const bool free = ::bind(one, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0;
    ::close(one);
    return free;
}

}  // namespace

std::string environment_variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::optional<std::string> find_test_program(const std::string& name) {
    for (const auto& folder : folders_of_programs()) {
        if (is_program(folder / name)) return (folder / name).string();
    }
    return {};
}

::sockaddr_in loopback(std::uint16_t port) {
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

std::vector<std::uint16_t> free_ports(std::size_t many) {
    static std::mt19937 random(std::random_device{}());
    std::vector<std::uint16_t> found;
    for (int i = 0; i < 1'000 && found.size() < many; ++i) {
        const auto port = static_cast<std::uint16_t>(10'000 + random() % 20'000);
        if (std::find(found.begin(), found.end(), port) != found.end()) continue;
        if (is_free(port)) found.push_back(port);
    }
    if (found.size() < many) throw std::runtime_error("no free port");
    return found;
}

::pid_t launch(std::vector<std::string> words, int output) {
    std::vector<char*> raw;
    for (auto& word : words) raw.push_back(word.data());
    raw.push_back(nullptr);
    const auto parent = ::getpid();
    const auto pid = ::fork();
    if (pid < 0) throw std::runtime_error("no process for " + words[0]);
    if (pid > 0) return pid;
    // A test that is killed leaves nothing, also when it was killed just now.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(::open("/dev/null", O_RDWR), STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::execv(raw[0], raw.data());
    ::_exit(127);
}

process_output run_to_end(std::vector<std::string> words) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const auto pid = launch(std::move(words), ends[1]);
    ::close(ends[1]);
    process_output out;
    std::array<char, 4'096> part;
    for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;) {
        out.text.append(part.data(), static_cast<std::size_t>(n));
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return out;
}

void wait_for(const std::string& what, const std::function<bool()>& is_so) {
    for (const auto end = clock::now() + patience; clock::now() < end;) {
        if (is_so()) return;
        ::poll(nullptr, 0, 10);
    }
    throw std::runtime_error("waited in vain until " + what);
}

}  // namespace trinco::detail::test
