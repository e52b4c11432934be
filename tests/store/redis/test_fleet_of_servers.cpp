#include "tests/store/redis/test_fleet_of_servers.hpp"

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
#include <chrono>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using words = std::vector<std::string>;

constexpr auto patience = 30s;

void pause() {
    ::poll(nullptr, 0, 10);
}

[[nodiscard]] bool is_free(std::uint16_t port) {
    const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ::sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool free = ::bind(one, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0;
    ::close(one);
    return free;
}

// Below those that the system gives to outgoing connections, which come and go.
[[nodiscard]] std::uint16_t free_port() {
    static std::mt19937 random(std::random_device{}());
    for (int i = 0; i < 1'000; ++i) {
        const auto port = static_cast<std::uint16_t>(10'000 + random() % 20'000);
        if (is_free(port)) return port;
    }
    throw std::runtime_error("no free port");
}

// Names and values of the configuration, of servers and Sentinels alike.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> port_settings(
    const fleet_process& p, const std::optional<fleet_tls>& tls) {
    const auto port = std::to_string(p.port());
    if (!tls) return {{"port", port}};
    return {{"port", "0"},
            {"tls-port", port},
            {"tls-cert-file", tls->certificate},
            {"tls-key-file", tls->key},
            {"tls-ca-cert-file", tls->authority},
            {"tls-auth-clients", "no"},
            {"tls-replication", "yes"}};
}

[[nodiscard]] words server_words(const fleet_process& p, const words& more,
                                 const std::optional<fleet_tls>& tls = {}) {
    words all{"--bind",
              "127.0.0.1",
              "--unixsocket",
              p.socket(),
              "--dir",
              p.folder(),
              "--save",
              "",
              "--appendonly",
              "no",
              "--logfile",
              p.folder() + "/log",
              "--repl-diskless-sync",
              "yes",
              "--repl-ping-replica-period",
              "1",
              "--repl-diskless-sync-delay",
              "0"};
    for (const auto& [name, value] : port_settings(p, tls)) {
        all.push_back("--" + name);
        all.push_back(value);
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

// "a:1\r\nb:2\r\n": what is behind `field`.
[[nodiscard]] std::string field_of(const std::string& text, const std::string& field) {
    const auto begin = ("\n" + text).find("\n" + field + ":");
    if (begin == std::string::npos) return {};
    const auto from = begin + field.size() + 1;
    return text.substr(from, text.find_first_of("\r\n", from) - from);
}

void expect_ok(const resp_reply& reply, const std::string& what) {
    if (reply.text != "OK") throw std::runtime_error(what + ": " + reply.text);
}

}  // namespace

void wait_until(const std::string& what, const std::function<bool()>& is_so) {
    std::string last;
    for (const auto end = clock::now() + patience; clock::now() < end; pause()) {
        try {
            if (is_so()) return;
        } catch (const std::runtime_error& error) {
            last = std::string(": ") + error.what();
        }
    }
    throw std::runtime_error("waited in vain until " + what + last);
}

// ---- a process ----------------------------------------------------------------------------------

fleet_process::fleet_process(std::string program, fs::path folder, words_at words)
    : program_(std::move(program)), folder_(std::move(folder)), words_(std::move(words)) {
    choose_ports();
    begin();
}

fleet_process::~fleet_process() {
    kill();
}

void fleet_process::choose_ports() {
    port_ = free_port();
    do bus_port_ = free_port();
    while (bus_port_ == port_);
}

void fleet_process::begin() {
    auto all = words_(*this);
    all.insert(all.begin(), program_);
    std::vector<char*> raw;
    for (auto& word : all) raw.push_back(word.data());
    raw.push_back(nullptr);
    const auto parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no process for a server");
    if (pid_ > 0) return;
    // A test that is killed leaves no server, also when it was killed just now.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    const int nothing = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(nothing, fd);
    ::execv(raw[0], raw.data());
    ::_exit(127);
}

bool fleet_process::has_ended() {
    if (pid_ <= 0) return true;
    if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
}

void fleet_process::wait_until_it_answers() {
    int attempts = 0;
    wait_until(program_ + " answers", [&] {
        if (has_ended()) {
            if (++attempts == 20) throw std::runtime_error(program_ + " does not run");
            choose_ports();
            begin();
        }
        return call({"PING"}).text == "PONG";
    });
}

void fleet_process::start() {
    kill();
    begin();
    wait_until(program_ + " answers again", [&] {
        if (has_ended()) begin();
        return call({"PING"}).kind != resp_reply::kind_t::nil;  // also LOADING, MASTERDOWN
    });
}

void fleet_process::signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
}

void fleet_process::kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

resp_reply fleet_process::call(const words& command) const {
    return test_connection(socket()).call(command);
}

// ---- a folder -----------------------------------------------------------------------------------

fleet_folder::fleet_folder() {
    std::string name = (fs::temp_directory_path() / "trinco-fleet-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
}

fleet_folder::~fleet_folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

fs::path fleet_folder::make(const std::string& name) const {
    fs::create_directory(path_ / name);
    return path_ / name;
}

// ---- one ----------------------------------------------------------------------------------------

single_server::single_server(const std::string& program, words more) {
    servers.emplace_back(program, folder_.make("server0"),
                         [more](const fleet_process& p) { return server_words(p, more); });
    servers[0].wait_until_it_answers();
}

// ---- Sentinels ----------------------------------------------------------------------------------

sentinel_fleet::sentinel_fleet(const std::string& program, words more,
                               std::chrono::milliseconds down_after, std::optional<fleet_tls> tls)
    : more_(std::move(more)), tls_(std::move(tls)) {
    const auto primary_words = [this](const fleet_process& p) {
        return server_words(p, more_, tls_);
    };
    servers.emplace_back(program, folder_.make("server0"), primary_words);
    servers[0].wait_until_it_answers();
    const auto port = servers[0].port();
    servers.emplace_back(program, folder_.make("server1"), [this, port](const fleet_process& p) {
        auto all = server_words(p, more_, tls_);
        for (const auto& word :
             {std::string("--replicaof"), std::string("127.0.0.1"), std::to_string(port)}) {
            all.push_back(word);
        }
        return all;
    });
    servers[1].wait_until_it_answers();
    // A Sentinel looks for replicas every 10 s only, but also when it begins.
    wait_until("the replica follows", [this] {
        return field_of(servers[0].call({"INFO", "replication"}).text, "slave0").find("online") !=
               std::string::npos;
    });
    start_sentinels(program, down_after);
}

void sentinel_fleet::start_sentinels(const std::string& program,
                                     std::chrono::milliseconds down_after) {
    const auto port = std::to_string(servers[0].port());
    for (int i = 0; i < 3; ++i) {
        const auto config = [this, port, down_after](const fleet_process& p) -> words {
            const auto file = p.folder() + "/" + std::to_string(p.port()) + ".conf";
            // It keeps there what it learns.
            if (!fs::exists(file)) {
                std::ofstream out(file);
                const std::string to = std::string(name) + " ";
                for (const auto& [setting, value] : port_settings(p, tls_)) {
                    out << setting << ' ' << value << '\n';
                }
                out << "bind 127.0.0.1\nunixsocket " << p.socket() << "\ndir " << p.folder()
                    << "\nlogfile " << p.folder() << "/log\n"
                    << "sentinel monitor " << to << "127.0.0.1 " << port << " 2\n"
                    << "sentinel down-after-milliseconds " << to << down_after.count() << "\n"
                    << "sentinel failover-timeout " << to << "3000\n";
            }
            return {file, "--sentinel"};
        };
        sentinels.emplace_back(program, folder_.make("sentinel" + std::to_string(i)), config);
    }
    for (auto& one : sentinels) {
        one.wait_until_it_answers();
        // The usual periods are seconds. That of PING stays: five times it is how old the news of a
        // replica may be that is chosen.
        (void)one.call({"SENTINEL", "DEBUG", "INFO-PERIOD", "200", "PUBLISH-PERIOD", "200",
                        "ASK-PERIOD", "100"});
    }
    wait_until("the Sentinels know each other", [this] { return is_complete(); });
}

bool sentinel_fleet::is_complete() const {
    return std::all_of(sentinels.begin(), sentinels.end(), [](const fleet_process& one) {
        return one.call({"SENTINEL", "CKQUORUM", name}).text.starts_with("OK 3 usable") &&
               one.call({"SENTINEL", "REPLICAS", name}).elements.size() == 1;
    });
}

std::string sentinel_fleet::url() const {
    std::string all = "redis+sentinel://";
    for (const auto& one : sentinels) all += (&one == &sentinels[0] ? "" : ",") + one.address();
    return all + "/" + name;
}

std::size_t sentinel_fleet::primary() const {
    std::map<std::string, int> named;
    for (const auto& one : sentinels) {
        if (one.pid() < 0) continue;
        const auto reply = one.call({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
        if (reply.elements.size() == 2) ++named[reply.elements[1].text];
    }
    for (std::size_t i = 0; i < servers.size(); ++i) {
        if (named[std::to_string(servers[i].port())] >= 2) return i;
    }
    throw std::runtime_error("the Sentinels do not agree on a primary");
}

// ---- a cluster ----------------------------------------------------------------------------------

cluster_fleet::cluster_fleet(const std::string& program, words more,
                             std::chrono::milliseconds down_after, std::optional<fleet_tls> tls) {
    if (tls) more.insert(more.end(), {"--tls-cluster", "yes"});
    for (int i = 0; i < 6; ++i) {
        nodes.emplace_back(program, folder_.make("node" + std::to_string(i)),
                           [more, tls](const fleet_process& p) {
                               words all = server_words(p, more, tls);
                               for (const auto& word :
                                    {std::string("--cluster-enabled"), std::string("yes"),
                                     std::string("--cluster-node-timeout"), std::string("1500"),
                                     std::string("--cluster-port"), std::to_string(p.bus_port())}) {
                                   all.push_back(word);
                               }
                               return all;
                           });
    }
    for (auto& node : nodes) node.wait_until_it_answers();
    form();
    // Not before: the longer it is, the more slowly nodes get to know each other.
    for (auto& node : nodes) {
        expect_ok(node.call({"CONFIG", "SET", "cluster-node-timeout",
                             std::to_string(down_after.count())}),
                  "node timeout");
    }
}

void cluster_fleet::form() {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        expect_ok(nodes[i].call({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}), "epoch");
        if (i == 0) continue;
        expect_ok(nodes[0].call({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes[i].port()),
                                 std::to_string(nodes[i].bus_port())}),
                  "meet");
    }
    for (unsigned i = 0; i < 3; ++i) {
        expect_ok(nodes[i].call({"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * slots / 3),
                                 std::to_string((i + 1) * slots / 3 - 1)}),
                  "slots");
    }
    wait_until("all nodes know each other", [this] {
        return std::all_of(nodes.begin(), nodes.end(), [](const fleet_process& node) {
            return field_of(node.call({"CLUSTER", "INFO"}).text, "cluster_known_nodes") == "6";
        });
    });
    for (std::size_t i = 3; i < 6; ++i) {
        expect_ok(nodes[i].call({"CLUSTER", "REPLICATE", id(i - 3)}), "replicate");
    }
    wait_until("all nodes agree", [this] {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (!agrees(i)) return false;
        }
        return true;
    });
}

bool cluster_fleet::agrees(std::size_t node) const {
    const auto slots_now = nodes[node].call({"CLUSTER", "SLOTS"});
    if (slots_now.elements.size() != 3) return false;
    // Each range: first, last, the primary, the replica.
    for (const auto& range : slots_now.elements) {
        if (range.elements.size() != 4) return false;
    }
    if (field_of(nodes[node].call({"CLUSTER", "INFO"}).text, "cluster_state") != "ok") return false;
    if (node < 3) return true;
    const auto info = nodes[node].call({"INFO", "replication"}).text;
    return field_of(info, "master_link_status") == "up";
}

std::string cluster_fleet::url() const {
    std::string all = "redis+cluster://";
    for (const auto& one : nodes) all += (&one == &nodes[0] ? "" : ",") + one.address();
    return all;
}

std::string cluster_fleet::id(std::size_t node) const {
    return nodes[node].call({"CLUSTER", "MYID"}).text;
}

std::size_t cluster_fleet::owner(unsigned slot, std::size_t asked) const {
    for (const auto& range : nodes[asked].call({"CLUSTER", "SLOTS"}).elements) {
        if (range.elements.at(0).integer > slot || range.elements.at(1).integer < slot) continue;
        const auto port = range.elements.at(2).elements.at(1).integer;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (nodes[i].port() == port) return i;
        }
    }
    throw std::runtime_error("nobody owns slot " + std::to_string(slot));
}

void cluster_fleet::move_slot(unsigned slot, std::size_t to, const std::function<void()>& between) {
    const auto from = owner(slot, to);
    const auto number = std::to_string(slot);
    expect_ok(nodes[to].call({"CLUSTER", "SETSLOT", number, "IMPORTING", id(from)}), "importing");
    expect_ok(nodes[from].call({"CLUSTER", "SETSLOT", number, "MIGRATING", id(to)}), "migrating");
    if (between) between();
    while (true) {
        const auto keys = nodes[from].call({"CLUSTER", "GETKEYSINSLOT", number, "10"});
        if (keys.elements.empty()) break;
        for (const auto& key : keys.elements) {
            const auto reply = nodes[from].call(
                {"MIGRATE", "127.0.0.1", std::to_string(nodes[to].port()), key.text, "0", "5000"});
            if (reply.text != "OK" && reply.text != "NOKEY") expect_ok(reply, "migrate");
        }
    }
    for (const auto node : {to, from}) {
        expect_ok(nodes[node].call({"CLUSTER", "SETSLOT", number, "NODE", id(to)}), "setslot");
    }
}

}  // namespace trinco::detail::test
