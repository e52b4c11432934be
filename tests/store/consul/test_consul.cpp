#include "tests/store/consul/test_consul.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <utility>

#include "tests/store/go_client.hpp"

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> demanded(std::optional<std::string> found, const char* what) {
    if (!found && !environment_variable("TRINCO_REQUIRE_CONSUL").empty()) {
        throw std::runtime_error(std::string("TRINCO_REQUIRE_CONSUL is set and there is no ") +
                                 what + "; `make servers` says why");
    }
    return found;
}

// Of an answer in JSON: what stands between the quotes behind this name.
std::string text_of(const std::string& json, const std::string& name) {
    const auto at = json.find('"' + name + "\":\"");
    if (at == std::string::npos) throw std::runtime_error("no " + name + " in " + json);
    const auto begin = at + name.size() + 4;
    return json.substr(begin, json.find('"', begin) - begin);
}

std::string in_quotes(const std::string& text) {
    std::string all = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') all += '\\';
        c == '\n' ? all += "\\n" : all += c;
    }
    return all + '"';
}

// 16 bytes in base64, without the ends of its alphabet.
std::string random_key() {
    std::random_device random;
    std::string key;
    for (int i = 0; i < 21; ++i) key += static_cast<char>('A' + random() % 26);
    return key + "A==";
}

// Everything until the other side closes or says nothing for so long; empty when nobody listens.
std::string exchange(std::uint16_t port, const std::string& request, int seconds) {
    const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto at = loopback(port);
    const ::timeval patience{seconds, 0};
    ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::string said;
    if (::connect(s, reinterpret_cast<const ::sockaddr*>(&at), sizeof at) == 0 &&
        ::send(s, request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size())) {
        std::array<char, 16'384> part;
        for (ssize_t n = 0; (n = ::recv(s, part.data(), part.size(), 0)) > 0;) {
            said.append(part.data(), static_cast<std::size_t>(n));
        }
    }
    ::close(s);
    return said;
}

}  // namespace

std::optional<std::string> find_consul() {
    const auto named = environment_variable("TRINCO_CONSUL_SERVER");
    return named.empty() ? demanded(find_test_program("consul"), "Consul") : named;
}

std::optional<std::string> find_consul_go_client() {
    return demanded(find_test_program(consul_go_client_program), consul_go_client_program);
}

std::string http_answer::field(std::string_view name) const {
    for (std::size_t begin = head.find("\r\n"); begin != std::string::npos;) {
        begin += 2;
        const auto end = head.find("\r\n", begin);
        const auto line = head.substr(begin, end - begin);
        if (line.size() > name.size() && line[name.size()] == ':' &&
            ::strncasecmp(line.data(), name.data(), name.size()) == 0) {
            const auto value = line.find_first_not_of(' ', name.size() + 1);
            return value == std::string::npos ? "" : line.substr(value);
        }
        begin = end;
    }
    return {};
}

test_consul::test_consul(consul_settings settings) : settings_(std::move(settings)) {
    std::string name = (fs::temp_directory_path() / "trinco-consul-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
    gossip_key_ = random_key();
    nodes_.resize(settings_.servers);
    for (int attempt = 0;; ++attempt) {
        try {
            choose_ports();
            for (std::size_t i = 0; i < size(); ++i) begin(i);
            wait_until_healthy();
            return;
        } catch (const std::exception&) {
            for (std::size_t i = 0; i < size(); ++i) kill(i);
            if (attempt == 2) {
                fs::remove_all(folder_);
                throw;
            }
            for (std::size_t i = 0; i < size(); ++i) fs::remove_all(place(i));
        }
    }
}

test_consul::~test_consul() {
    for (std::size_t i = 0; i < size(); ++i) kill(i);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

void test_consul::choose_ports() {
    const auto ports = free_ports(4 * size());
    for (std::size_t i = 0; i < size(); ++i) {
        nodes_[i] = {ports[4 * i], ports[4 * i + 1], ports[4 * i + 2], ports[4 * i + 3], -1};
    }
}

// Without a network's delays; what is not needed for keys and sessions is off.
std::string test_consul::configuration(std::size_t i) const {
    const auto& n = nodes_[i];
    const auto port = [](std::uint16_t p) { return std::to_string(p); };
    const bool tls = !settings_.certificate.empty();
    std::string all = R"({"server":true,"bind_addr":"127.0.0.1","client_addr":"127.0.0.1",)"
                      R"("datacenter":"dc1","disable_update_check":true,"log_level":"INFO",)"
                      R"("connect":{"enabled":false},"ui_config":{"enabled":false},)"
                      R"("performance":{"raft_multiplier":1},"leave_on_terminate":false,)"
                      R"("gossip_lan":{"gossip_interval":"20ms","probe_interval":"200ms",)"
                      R"("probe_timeout":"100ms"},"limits":{"http_max_conns_per_client":)";
    all += std::to_string(settings_.connections) + R"(},"encrypt":)" + in_quotes(gossip_key_) +
           R"(,"node_name":"n)" + std::to_string(i) + R"(","bootstrap_expect":)" +
           std::to_string(size()) + R"(,"data_dir":)" + in_quotes((place(i) / "data").string()) +
           R"(,"autopilot":{"cleanup_dead_servers":)" +
           (settings_.cleanup_dead_servers ? "true" : "false") + R"(},"session_ttl_min":)" +
           in_quotes(settings_.session_ttl_min) + R"(,"ports":{"http":)" + port(n.http) +
           R"(,"https":)" + (tls ? port(n.https) : "-1") + R"(,"server":)" + port(n.server) +
           R"(,"serf_lan":)" + port(n.gossip) +
           R"(,"serf_wan":-1,"dns":-1,"grpc":-1,"grpc_tls":-1})";
    if (size() > 1) {
        all += R"(,"retry_interval":"1s","retry_join":[)";
        for (std::size_t k = 0; k < size(); ++k) {
            all += (k > 0 ? "," : "") + in_quotes("127.0.0.1:" + port(nodes_[k].gossip));
        }
        all += "]";
    }
    if (const auto& token = settings_.management_token; !token.empty()) {
        all += R"(,"acl":{"enabled":true,"default_policy":"deny","tokens":{)"
               R"("initial_management":)" +
               in_quotes(token) + R"(,"agent":)" + in_quotes(token) + "}}";
    }
    if (tls) {
        all += R"(,"tls":{"https":{"cert_file":)" + in_quotes(settings_.certificate) +
               R"(,"key_file":)" + in_quotes(settings_.key);
        if (const auto& ca = settings_.client_ca; !ca.empty()) {
            all += R"(,"verify_incoming":true,"ca_file":)" + in_quotes(ca);
        }
        all += "}}";
    }
    if (!settings_.more.empty()) all += "," + settings_.more;
    return all + "}";
}

void test_consul::begin(std::size_t i) {
    fs::create_directories(place(i));
    const auto file = (place(i) / "agent.json").string();
    std::ofstream(file) << configuration(i);
    const auto log = (place(i) / "log").string();
    const int log_file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    nodes_[i].pid = launch({settings_.program, "agent", "-config-file=" + file}, log_file);
    ::close(log_file);
}

bool test_consul::is_healthy(std::size_t i) {
    auto& n = nodes_[i];
    if (::waitpid(n.pid, nullptr, WNOHANG) == n.pid) {
        n.pid = -1;
        std::ifstream log(place(i) / "log");
        const std::string said(std::istreambuf_iterator<char>(log), {});
        throw std::runtime_error(
            settings_.program +
            " does not run: " + said.substr(said.size() - std::min<std::size_t>(said.size(), 800)));
    }
    // There is a leader, and the node is known to it.
    const auto made = ask("PUT", "/v1/session/create", R"({"TTL":"10s","NodeChecks":[]})", i);
    if (made.status != 200) return false;
    return ask("PUT", "/v1/session/destroy/" + text_of(made.body, "ID"), "", i).status == 200;
}

void test_consul::wait_until_healthy() {
    for (std::size_t i = 0; i < size(); ++i) {
        if (nodes_[i].pid > 0) wait_for("Consul answers", [&] { return is_healthy(i); });
    }
}

std::string test_consul::addresses() const {
    std::string all;
    for (std::size_t i = 0; i < size(); ++i) all += (i > 0 ? "," : "") + address(i);
    return all;
}

void test_consul::signal(int number, std::size_t node) const {
    if (nodes_[node].pid <= 0) return;
    ::kill(nodes_[node].pid, number);
    // It stands still only when all of its threads do.
    if (number == SIGSTOP) ::waitpid(nodes_[node].pid, nullptr, WUNTRACED);
}

void test_consul::kill(std::size_t node) {
    auto& pid = nodes_[node].pid;
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
}

void test_consul::start(std::size_t node) {
    begin(node);
    wait_for("Consul answers again", [&] { return is_healthy(node); });
}

std::size_t test_consul::leader() const {
    std::size_t found = 0;
    wait_for("a server leads", [&] {
        for (std::size_t i = 0; i < size(); ++i) {
            if (nodes_[i].pid <= 0) continue;
            // It alone says so of itself.
            const auto said = ask_for(1, "GET", "/v1/agent/self", "", i).body;
            if (said.find(R"("leader":"true")") == std::string::npos) continue;
            found = i;
            return true;
        }
        return false;
    });
    return found;
}

http_answer test_consul::ask(const std::string& method, const std::string& target,
                             const std::string& body, std::size_t node) const {
    return ask_for(15, method, target, body, node);
}

http_answer test_consul::ask_for(int seconds, const std::string& method, const std::string& target,
                                 const std::string& body, std::size_t node) const {
    auto request = method + " " + target + " HTTP/1.0\r\n";
    if (const auto& token = settings_.management_token; !token.empty()) {
        request += "X-Consul-Token: " + token + "\r\n";
    }
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    const auto said = exchange(port(node), request, seconds);
    const auto head = said.find("\r\n\r\n");
    if (head == std::string::npos) return {};
    // "HTTP/1.0 200 OK"
    return {std::stoi(said.substr(9, 3)), said.substr(0, head), said.substr(head + 4)};
}

std::string test_consul::must(const std::string& method, const std::string& target,
                              const std::string& body, std::size_t node) const {
    auto said = ask(method, target, body, node);
    if (said.status == 200) return std::move(said.body);
    throw std::runtime_error(method + " " + target + ": " + std::to_string(said.status) + " " +
                             said.body);
}

void test_consul::clear() const {
    const auto all = must("GET", "/v1/session/list");
    const std::string name = R"("ID":")";
    for (auto at = all.find(name); at != std::string::npos; at = all.find(name, at + 1)) {
        must("PUT", "/v1/session/destroy/" + all.substr(at + name.size(), 36));
    }
    must("DELETE", "/v1/kv/?recurse");
}

std::string test_consul::token_for(const std::string& rules) const {
    static std::atomic<int> made_before = 0;
    const auto policy = "p" + std::to_string(made_before++);
    must("PUT", "/v1/acl/policy",
         R"({"Name":")" + policy + R"(","Rules":)" + in_quotes(rules) + "}");
    const auto made =
        must("PUT", "/v1/acl/token", R"({"Policies":[{"Name":")" + policy + R"("}]})");
    return text_of(made, "SecretID");
}

process_output test_consul::cli(std::vector<std::string> words, std::size_t node) const {
    words.insert(words.begin(),
                 {"/usr/bin/env", "CONSUL_HTTP_ADDR=" + address(node),
                  "CONSUL_HTTP_TOKEN=" + settings_.management_token, settings_.program});
    return run_to_end(std::move(words));
}

}  // namespace trinco::detail::test
