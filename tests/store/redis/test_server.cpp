#include "tests/store/redis/test_server.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

[[nodiscard]] std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

[[nodiscard]] bool is_program(const fs::path& p) {
    return ::access(p.c_str(), X_OK) == 0 && !fs::is_directory(p);
}

}  // namespace

namespace {

[[nodiscard]] std::vector<fs::path> folders_of_programs() {
    std::vector<fs::path> folders;
    const std::string path = variable("PATH");
    for (std::size_t begin = 0; begin <= path.size();) {
        const std::size_t end = std::min(path.find(':', begin), path.size());
        folders.emplace_back(path.substr(begin, end - begin));
        begin = end + 1;
    }
    const std::string cache = variable("XDG_CACHE_HOME");
    const fs::path home = cache.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(cache);
    folders.push_back(home / "trinco" / "servers" / "bin");
    return folders;
}

}  // namespace

std::optional<std::string> find_redis_server() {
    if (const std::string named = variable("TRINCO_REDIS_SERVER"); !named.empty()) return named;
    for (const fs::path& folder : folders_of_programs()) {
        for (const char* name : {"redis-server", "valkey-server"}) {
            if (is_program(folder / name)) return (folder / name).string();
        }
    }
    return std::nullopt;
}

std::optional<std::string> find_server_of(const std::string& kind) {
    const fs::path named = variable("TRINCO_REDIS_SERVER");
    if (!named.empty() && named.filename().string().starts_with(kind)) return named.string();
    for (const fs::path& folder : folders_of_programs()) {
        const fs::path program = folder / (kind + "-server");
        if (is_program(program)) return program.string();
    }
    return std::nullopt;
}

test_connection::test_connection(const std::string& socket)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (socket.size() >= sizeof to.sun_path) throw std::runtime_error("the path is too long");
    socket.copy(to.sun_path, socket.size());
    if (::connect(socket_, reinterpret_cast<const ::sockaddr*>(&to), sizeof to) != 0) {
        ::close(socket_);
        throw std::runtime_error("nobody listens on " + socket);
    }
}

test_connection::~test_connection() {
    ::close(socket_);
}

void test_connection::send(const std::vector<std::string>& command) {
    unsent_ += resp_command(command);
}

void test_connection::flush() {
    for (std::string_view rest = unsent_; !rest.empty();) {
        const auto n = ::send(socket_, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (n <= 0) throw std::runtime_error("the server has closed the connection");
        rest.remove_prefix(static_cast<std::size_t>(n));
    }
    unsent_.clear();
}

resp_reply test_connection::receive() {
    flush();
    while (true) {
        if (auto reply = in_.next()) return std::move(*reply);
        if (in_.fault() != nullptr) throw std::runtime_error(in_.fault()->sentence);
        ::pollfd wait{socket_, POLLIN, 0};
        if (::poll(&wait, 1, 10'000) != 1) throw std::runtime_error("no answer in 10 s");
        std::array<char, 65'536> bytes;
        const auto n = ::recv(socket_, bytes.data(), bytes.size(), 0);
        if (n <= 0) throw std::runtime_error("the server has closed the connection");
        in_.feed({bytes.data(), static_cast<std::size_t>(n)});
    }
}

resp_reply test_connection::call(const std::vector<std::string>& command) {
    send(command);
    return receive();
}

test_server::test_server(std::string program, std::vector<std::string> arguments)
    : program_(std::move(program)), arguments_(std::move(arguments)) {
    std::string name = (fs::temp_directory_path() / "trinco-redis-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
    try {
        start();
    } catch (...) {
        clean_up();
        throw;
    }
}

test_server::~test_server() {
    clean_up();
}

void test_server::start() {
    const std::string at = socket();
    std::vector<std::string> words{
        program_,         "--port", "0", "--unixsocket", at,   "--dir",
        folder_.string(), "--save", "",  "--appendonly", "no", "--logfile",
        file("log")};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> raw;
    for (auto& word : words) raw.push_back(word.data());
    raw.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves no server
        ::execv(raw[0], raw.data());
        ::_exit(127);
    }
    if (process_ < 0) throw std::runtime_error("no process for the server");
    for (auto end = std::chrono::steady_clock::now() + 10s;;) {
        try {
            const auto answer = test_connection(at).call({"PING"});
            // With a password nobody is let in unasked, which is an answer, too.
            if (answer.text == "PONG" || answer.error_word() == "NOAUTH") return;
        } catch (const std::runtime_error&) {
            if (std::chrono::steady_clock::now() > end) throw;
        }
        if (::waitpid(process_, nullptr, WNOHANG) == process_) {
            process_ = -1;
            throw std::runtime_error(program_ + " does not run");
        }
        ::poll(nullptr, 0, 5);
    }
}

void test_server::restart() {
    kill();
    start();
}

void test_server::send(int signal) const noexcept {
    if (process_ > 0) ::kill(process_, signal);
}

void test_server::kill() noexcept {
    if (process_ <= 0) return;
    send(SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
}

void test_server::clean_up() noexcept {
    kill();
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

}  // namespace trinco::detail::test
