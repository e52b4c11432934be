// A real Consul for tests: one server or several, on 127.0.0.1, each a process with a folder of its
// own. They end with the object, and with the thread that began them.
//
// Tuned to elect fast, and with sessions as short as a second. A port that somebody took between
// being looked for and being used costs another attempt. Threads: one at a time. Whatever cannot be
// done in 30 s throws std::runtime_error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/store/test_process.hpp"

namespace trinco::detail::test {

// The path of Consul: what TRINCO_CONSUL_SERVER names, else find_test_program. Where there must be
// one, which TRINCO_REQUIRE_CONSUL says, there being none is an error and no reason to skip a test.
[[nodiscard]] std::optional<std::string> find_consul();
// The same for the other program that Go builds, with Consul's own client.
[[nodiscard]] std::optional<std::string> find_consul_go_client();

struct consul_settings {
    std::string program;
    std::size_t servers = 1;
    std::string session_ttl_min = "1s";
    // As Consul does it by default: the node of a dead server is removed, and with it all sessions
    // that were made there.
    bool cleanup_dead_servers = false;
    std::size_t connections = 2'000;  // of one host, which an agent takes; by default 200
    // Demanded of every request; this token may do everything.
    std::string management_token = {};
    // HTTPS beside HTTP: PEM files; `client_ca` demands a certificate of each client of HTTPS.
    std::string certificate = {};
    std::string key = {};
    std::string client_ca = {};
    std::string more = {};  // members of each agent's configuration, in JSON
};

struct http_answer {
    int status = 0;  // 0: there was none
    std::string head;
    std::string body;
    // Of the head, without spaces around it; empty when there is none.
    [[nodiscard]] std::string field(std::string_view name) const;
};

class test_consul {
public:
    // Returns when all servers answer, and take sessions.
    explicit test_consul(consul_settings settings);
    ~test_consul();
    test_consul(const test_consul&) = delete;
    test_consul& operator=(const test_consul&) = delete;

    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    [[nodiscard]] std::uint16_t port(std::size_t node = 0) const { return nodes_[node].http; }
    [[nodiscard]] std::uint16_t https_port(std::size_t node = 0) const {
        return nodes_[node].https;
    }
    [[nodiscard]] std::string address(std::size_t node = 0) const {
        return "127.0.0.1:" + std::to_string(port(node));
    }
    // All of them, with commas.
    [[nodiscard]] std::string addresses() const;
    [[nodiscard]] ::pid_t pid(std::size_t node = 0) const { return nodes_[node].pid; }

    // SIGSTOP, SIGCONT ...; returns when it has stopped.
    void signal(int number, std::size_t node = 0) const;
    void kill(std::size_t node = 0);  // SIGKILL, and it is gone
    // Begins it again with its data; returns when it answers and takes sessions.
    void start(std::size_t node = 0);
    // The one that leads, by the word of those that run and answer; waits for one.
    [[nodiscard]] std::size_t leader() const;
    // All of them answer and take sessions.
    void wait_until_healthy();

    // One request by HTTP/1.0, with the management token if there is one; at most 15 s.
    [[nodiscard]] http_answer ask(const std::string& method, const std::string& target,
                                  const std::string& body = "", std::size_t node = 0) const;
    // The same, which must be answered with 200; its body.
    std::string must(const std::string& method, const std::string& target,
                     const std::string& body = "", std::size_t node = 0) const;
    // All keys and all sessions end.
    void clear() const;
    // A token with these rules, in HCL.
    [[nodiscard]] std::string token_for(const std::string& rules) const;
    // Words of the `consul` program, at a server; both outputs together.
    [[nodiscard]] process_output cli(std::vector<std::string> words, std::size_t node = 0) const;

private:
    struct process {
        std::uint16_t http = 0;
        std::uint16_t https = 0;
        std::uint16_t server = 0;
        std::uint16_t gossip = 0;
        ::pid_t pid = -1;
    };
    [[nodiscard]] http_answer ask_for(int seconds, const std::string& method,
                                      const std::string& target, const std::string& body,
                                      std::size_t node) const;
    void choose_ports();
    void begin(std::size_t i);
    [[nodiscard]] bool is_healthy(std::size_t i);
    [[nodiscard]] std::string configuration(std::size_t i) const;
    [[nodiscard]] std::filesystem::path place(std::size_t i) const {
        return folder_ / std::to_string(i);
    }

    const consul_settings settings_;
    std::filesystem::path folder_;
    std::string gossip_key_;  // who is no part of this cluster cannot join it by chance
    std::vector<process> nodes_;
};

}  // namespace trinco::detail::test
