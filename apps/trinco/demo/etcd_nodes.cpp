#include "apps/trinco/demo/etcd_nodes.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string_view>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/start/executables.hpp"
#include "core/quoted.hpp"

namespace trinco::program::demo {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto patience = 10s;
constexpr int attempts = 3;
constexpr std::size_t path_shown = 300;

bool is_program(const fs::path& file) {
    struct ::stat found {};
    return ::stat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
           ::access(file.c_str(), X_OK) == 0;
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
std::uint16_t free_port(std::vector<std::uint16_t>& taken) {
    static std::mt19937 random(std::random_device{}());
    for (int i = 0; i < 1'000; ++i) {
        const auto port = static_cast<std::uint16_t>(10'000 + random() % 20'000);
        if (std::find(taken.begin(), taken.end(), port) != taken.end() || !is_free(port)) continue;
        taken.push_back(port);
        return port;
    }
    return 0;
}

// What a node of this machine answers to GET /metrics; empty when it does not.
std::string metrics_of(std::uint16_t port) {
    const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto at = loopback(port);
    const ::timeval moment{0, 200'000};
    ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
    std::string said;
    constexpr std::string_view ask = "GET /metrics HTTP/1.0\r\n\r\n";
    if (::connect(s, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0 &&
        ::send(s, ask.data(), ask.size(), MSG_NOSIGNAL) > 0) {
        std::array<char, 16'384> part{};
        for (::ssize_t n = 0; (n = ::recv(s, part.data(), part.size(), 0)) > 0;) {
            said.append(part.data(), static_cast<std::size_t>(n));
        }
    }
    ::close(s);
    return said;
}

std::string last_complaint(const fs::path& log) {
    std::ifstream text(log);
    std::string last;
    for (std::string line; std::getline(text, line);) {
        if (line.find("fatal") != std::string::npos || line.find("error") != std::string::npos) {
            last = line;
        }
    }
    return last;
}

}  // namespace

std::variant<fs::path, problem> find_etcd(const std::optional<std::string>& named) {
    std::error_code error;
    if (named) {
        const fs::path file = fs::absolute(*named, error);
        if (!error && is_program(file)) return file;
        return problem{exit_usage, "--etcd names " + detail::quoted(*named, path_shown) +
                                       ", which is no program; it is the file of etcd itself"};
    }
    const char* const path = std::getenv("PATH");
    std::string_view left = path != nullptr ? path : "";
    while (!left.empty()) {
        const fs::path file = fs::path(left.substr(0, left.find(':'))) / "etcd";
        left.remove_prefix(std::min(left.find(':'), left.size() - 1) + 1);
        if (file.is_absolute() && is_program(file)) return file;
    }
    const fs::path beside = program_file().parent_path() / "etcd";
    if (beside.is_absolute() && is_program(beside)) return beside;
    return problem{exit_unavailable,
                   "there is no program etcd in PATH, nor beside trinco, of which to start three "
                   "nodes; --etcd FILE names one"};
}

std::variant<etcd_nodes, problem> etcd_nodes::start(const stage& on) {
    std::string complaint;
    for (int attempt = 0; attempt < attempts && !on.over(); ++attempt) {
        etcd_nodes all;
        if (auto why = begin(on, attempt, all)) return std::move(*why);
        const auto end = steady::now() + patience;
        bool runs = true;
        while (runs && !all.all_follow() && steady::now() < end && on.pause(50ms)) {
            for (node& one : all.nodes_) runs = runs && !one.process.ended();
        }
        if (runs && all.all_follow()) return all;
        complaint = last_complaint(on.scratch / ("etcd-log-" + std::to_string(attempt)));
    }
    return problem{exit_unavailable,
                   "three nodes of " + detail::quoted(on.etcd.string(), path_shown) +
                       " did not find a leader" +
                       (complaint.empty() ? "" : ": " + detail::quoted(complaint, path_shown))};
}

std::optional<problem> etcd_nodes::begin(const stage& on, int attempt, etcd_nodes& to) {
    std::vector<std::uint16_t> taken;
    std::vector<ports> at;
    std::string cluster;
    const std::string here = "http://127.0.0.1:";
    for (std::size_t i = 0; i < etcd_node_count; ++i) {
        at.push_back({free_port(taken), free_port(taken), free_port(taken)});
        cluster += (i > 0 ? ",n" : "n") + std::to_string(i + 1) + "=" + here +
                   std::to_string(at.back().peer);
    }
    const std::string mine = std::to_string(attempt);
    for (std::size_t i = 0; i < etcd_node_count; ++i) {
        const std::string name = "n" + std::to_string(i + 1);
        const std::string client = here + std::to_string(at[i].client);
        const std::string peer = here + std::to_string(at[i].peer);
        role as;
        as.program = on.etcd;
        as.errors = on.scratch / ("etcd-log-" + mine);
        as.words = {"--name=" + name,
                    "--data-dir=" + (on.scratch / (name + "-" + mine)).string(),
                    "--listen-client-urls=" + client,
                    "--advertise-client-urls=" + client,
                    "--listen-peer-urls=" + peer,
                    "--initial-advertise-peer-urls=" + peer,
                    "--initial-cluster=" + cluster,
                    "--initial-cluster-token=" + on.scratch.parent_path().filename().string(),
                    "--listen-metrics-urls=" + here + std::to_string(at[i].metrics)};
        auto started = cast::start(as);
        if (auto* why = std::get_if<problem>(&started)) return std::move(*why);
        to.nodes_.push_back({at[i], std::move(std::get<cast>(started))});
    }
    return std::nullopt;
}

bool etcd_nodes::all_follow() const {
    return std::all_of(nodes_.begin(), nodes_.end(), [](const node& one) {
        return metrics_of(one.at.metrics).find("\netcd_server_has_leader 1\n") != std::string::npos;
    });
}

std::string etcd_nodes::url() const {
    std::string all = "etcd://";
    for (const node& one : nodes_) {
        all += (&one == nodes_.data() ? "" : ",") + ("127.0.0.1:" + std::to_string(one.at.client));
    }
    return all;
}

std::optional<std::size_t> etcd_nodes::leader() const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].killed) continue;
        const auto said = metrics_of(nodes_[i].at.metrics);
        if (said.find("\netcd_server_is_leader 1\n") != std::string::npos) return i;
    }
    return std::nullopt;
}

void etcd_nodes::kill(std::size_t which) {
    nodes_[which].process.signal(SIGKILL);
    static_cast<void>(nodes_[which].process.ended(2s));
    nodes_[which].killed = true;
}

}  // namespace trinco::program::demo
