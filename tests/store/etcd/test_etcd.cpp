#include "tests/store/etcd/test_etcd.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

std::optional<std::string> find_etcd(const std::string& kind) {
    if (const auto named = environment_variable("TRINCO_ETCD_SERVER"); !named.empty()) return named;
    return find_test_program(kind);
}

std::vector<const char*> etcd_kinds(std::vector<const char*> usual) {
    if (!environment_variable("TRINCO_ETCD_LONG").empty()) return {"etcd", "etcd-3.4", "etcd-3.6"};
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
    const auto ports = free_ports(3 * size());
    for (std::size_t i = 0; i < size(); ++i) {
        nodes_[i] = {ports[3 * i], ports[3 * i + 1], ports[3 * i + 2], -1};
    }
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
    return run_to_end(std::move(words));
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
