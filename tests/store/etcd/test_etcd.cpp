#include "tests/store/etcd/test_etcd.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
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
#include <random>
#include <stdexcept>
#include <utility>

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto patience = 30s;

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? value : "";
}

bool is_program(const fs::path& p) {
    return ::access(p.c_str(), X_OK) == 0 && !fs::is_directory(p);
}

std::vector<fs::path> folders_of_programs() {
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

::sockaddr_in loopback(std::uint16_t port) {
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

bool is_free(std::uint16_t port) {
    const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto at = loopback(port);
    const bool free = ::bind(one, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0;
    ::close(one);
    return free;
}

// Below those that the system gives to outgoing connections, which come and go.
std::uint16_t free_port() {
    static std::mt19937 random(std::random_device{}());
    for (int i = 0; i < 1'000; ++i) {
        const auto port = static_cast<std::uint16_t>(10'000 + random() % 20'000);
        if (is_free(port)) return port;
    }
    throw std::runtime_error("no free port");
}

// What a port says to GET /health, at most a second later; nothing when it says nothing.
std::string health_of(std::uint16_t port) {
    const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto at = loopback(port);
    const ::timeval second{1, 0};
    ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    std::string said;
    const std::string ask = "GET /health HTTP/1.0\r\n\r\n";
    if (::connect(s, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0 &&
        ::send(s, ask.data(), ask.size(), MSG_NOSIGNAL) > 0) {
        std::array<char, 4'096> part;
        for (ssize_t n = 0; (n = ::recv(s, part.data(), part.size(), 0)) > 0;) {
            said.append(part.data(), static_cast<std::size_t>(n));
        }
    }
    ::close(s);
    return said;
}

// The new process; its outputs go to this descriptor.
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

}  // namespace

void wait_for(const std::string& what, const std::function<bool()>& is_so) {
    for (const auto end = clock::now() + patience; clock::now() < end;) {
        if (is_so()) return;
        ::poll(nullptr, 0, 10);
    }
    throw std::runtime_error("waited in vain until " + what);
}

std::optional<std::string> find_test_program(const std::string& name) {
    for (const auto& folder : folders_of_programs()) {
        if (is_program(folder / name)) return (folder / name).string();
    }
    return {};
}

std::optional<std::string> find_etcd(const std::string& kind) {
    if (const auto named = variable("TRINCO_ETCD_SERVER"); !named.empty()) return named;
    return find_test_program(kind);
}

std::vector<const char*> etcd_kinds(std::vector<const char*> usual) {
    if (!variable("TRINCO_ETCD_LONG").empty()) return {"etcd", "etcd-3.4", "etcd-3.6"};
    return usual;
}

std::string version_of(const std::string& kind) {
    return kind == "etcd" ? "V3_5" : "V3_" + kind.substr(kind.size() - 1);
}

test_etcd::test_etcd(etcd_settings settings) : settings_(std::move(settings)) {
    std::string name = (fs::temp_directory_path() / "trinco-etcd-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
    nodes_.resize(settings_.nodes);
    for (int attempt = 0;; ++attempt) {
        choose_ports();
        for (std::size_t i = 0; i < size(); ++i) begin(i);
        try {
            wait_until_healthy();
            return;
        } catch (const std::runtime_error&) {
            for (std::size_t i = 0; i < size(); ++i) kill(i);
            if (attempt == 2) throw;
            for (std::size_t i = 0; i < size(); ++i) {
                fs::remove_all(folder_ / std::to_string(i));
            }
        }
    }
}

test_etcd::~test_etcd() {
    for (std::size_t i = 0; i < size(); ++i) kill(i);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

void test_etcd::choose_ports() {
    std::vector<std::uint16_t> taken;
    const auto one = [&] {
        for (;;) {
            const auto port = free_port();
            if (std::find(taken.begin(), taken.end(), port) != taken.end()) continue;
            taken.push_back(port);
            return port;
        }
    };
    for (auto& n : nodes_) n = {one(), one(), one(), -1};
}

std::vector<std::string> test_etcd::words_of(std::size_t i) const {
    const std::string here = "http://127.0.0.1:";
    const bool tls = !settings_.certificate.empty();
    const auto& n = nodes_[i];
    const auto client = (tls ? "https://" : "http://") + address(i);
    const auto peer = here + std::to_string(n.peer);
    std::string all;
    for (std::size_t k = 0; k < size(); ++k) {
        if (k > 0) all += ",";
        all += "n" + std::to_string(k) + "=" + here + std::to_string(nodes_[k].peer);
    }
    const bool alone = size() == 1;
    std::vector<std::string> words{settings_.program,
                                   "--name=n" + std::to_string(i),
                                   "--data-dir=" + (folder_ / std::to_string(i)).string(),
                                   "--listen-client-urls=" + client,
                                   "--advertise-client-urls=" + client,
                                   "--listen-peer-urls=" + peer,
                                   "--initial-advertise-peer-urls=" + peer,
                                   "--initial-cluster=" + all,
                                   "--initial-cluster-token=" + folder_.filename().string(),
                                   "--listen-metrics-urls=" + here + std::to_string(n.health),
                                   alone ? "--heartbeat-interval=20" : "--heartbeat-interval=100",
                                   alone ? "--election-timeout=200" : "--election-timeout=1000"};
    if (tls) {
        words.push_back("--cert-file=" + settings_.certificate);
        words.push_back("--key-file=" + settings_.key);
        if (!settings_.client_ca.empty()) {
            words.push_back("--client-cert-auth");
            words.push_back("--trusted-ca-file=" + settings_.client_ca);
        }
    }
    words.insert(words.end(), settings_.more.begin(), settings_.more.end());
    return words;
}

void test_etcd::begin(std::size_t i) {
    const auto log = (folder_ / ("log" + std::to_string(i))).string();
    const int log_file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    nodes_[i].pid = launch(words_of(i), log_file);
    ::close(log_file);
}

bool test_etcd::is_healthy(std::size_t i) {
    auto& n = nodes_[i];
    if (::waitpid(n.pid, nullptr, WNOHANG) == n.pid) {
        n.pid = -1;
        throw std::runtime_error(settings_.program + " does not run");
    }
    return health_of(n.health).find("\"health\":\"true\"") != std::string::npos;
}

void test_etcd::wait_until_healthy() {
    for (std::size_t i = 0; i < size(); ++i) {
        if (nodes_[i].pid > 0) wait_for("etcd answers", [&] { return is_healthy(i); });
    }
}

std::string test_etcd::addresses() const {
    std::string all;
    for (std::size_t i = 0; i < size(); ++i) all += (i > 0 ? "," : "") + address(i);
    return all;
}

void test_etcd::signal(int number, std::size_t node) const {
    if (nodes_[node].pid <= 0) return;
    ::kill(nodes_[node].pid, number);
    // It stands still only when all of its threads do.
    if (number == SIGSTOP) ::waitpid(nodes_[node].pid, nullptr, WUNTRACED);
}

void test_etcd::kill(std::size_t node) {
    auto& pid = nodes_[node].pid;
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
}

void test_etcd::start(std::size_t node) {
    begin(node);
    wait_for("etcd answers again", [&] { return is_healthy(node); });
}

std::size_t test_etcd::leader() const {
    std::size_t found = 0;
    wait_for("a node leads", [&] {
        for (std::size_t i = 0; i < size(); ++i) {
            if (nodes_[i].pid <= 0) continue;
            const auto said = run({"--endpoints=" + address(i), "endpoint", "status"});
            // "127.0.0.1:2379, 8e9e05c52164694d, 3.4.23, 20 kB, true, false, 2, 4, 4, "
            // and of 3.6 "..., 3.6.0, 20 kB, 16 kB, 20%, 0 B, true, false, 2, 4, 4, , , false"
            if (said.code == 0 && said.text.find("B, true, ") != std::string::npos) {
                found = i;
                return true;
            }
        }
        return false;
    });
    return found;
}

test_etcd::output test_etcd::run(std::vector<std::string> words) const {
    auto program = fs::path(settings_.program);
    auto name = program.filename().string();
    words.insert(words.begin(), (program.parent_path() / ("etcdctl" + name.substr(4))).string());
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const auto pid = launch(std::move(words), ends[1]);
    ::close(ends[1]);
    output out;
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

test_etcd::output test_etcd::ctl(const std::vector<std::string>& words) const {
    std::string running;
    for (std::size_t i = 0; i < size(); ++i) {
        if (nodes_[i].pid > 0) running += (running.empty() ? "" : ",") + address(i);
    }
    std::vector<std::string> all{"--endpoints=" + running};
    all.insert(all.end(), words.begin(), words.end());
    return run(std::move(all));
}

std::string test_etcd::must(const std::vector<std::string>& words) const {
    const auto said = ctl(words);
    if (said.code == 0) return said.text;
    std::string command = "etcdctl";
    for (const auto& word : words) command += " " + word;
    throw std::runtime_error(command + ": " + said.text);
}

void test_etcd::demand_login(const std::string& password) const {
    ctl({"role", "add", "root"});  // newer ones have it
    must({"user", "add", "root:" + password});
    must({"user", "grant-role", "root", "root"});
    must({"auth", "enable"});
}

}  // namespace trinco::detail::test
