// A real etcd for tests: one node or several, on 127.0.0.1, each a process with a folder of its
// own. They end with the object, and with the thread that began them.
//
// Tuned to elect fast: a leader that is gone is replaced within about a second, and the least TTL
// of a lease is 1 s of one node and 2 s of several. A port that somebody took between being looked
// for and being used costs another attempt. Threads: one at a time. Whatever cannot be done in 30 s
// throws std::runtime_error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/store/test_process.hpp"

namespace trinco::detail::test {

// The path of etcd 3.5 or later ("etcd"), of 3.4 ("etcd-3.4") or of 3.6 ("etcd-3.6"): the one that
// TRINCO_ETCD_SERVER names, of any, else find_test_program.
[[nodiscard]] std::optional<std::string> find_etcd(const std::string& kind = "etcd");
// For tests with a kind as their parameter: the usual ones, or all when TRINCO_ETCD_LONG is set.
[[nodiscard]] std::vector<const char*> etcd_kinds(std::vector<const char*> usual);
// "V3_5", for the names of such tests.
[[nodiscard]] std::string version_of(const std::string& kind);

struct etcd_settings {
    std::string program;
    std::size_t nodes = 1;
    std::vector<std::string> more = {};  // words for each node
    // With TLS to clients: PEM files; `client_ca` demands a certificate of each of them.
    std::string certificate = {};
    std::string key = {};
    std::string client_ca = {};
};

class test_etcd {
public:
    // Returns when all nodes answer and agree on a leader.
    explicit test_etcd(etcd_settings settings);
    ~test_etcd();
    test_etcd(const test_etcd&) = delete;
    test_etcd& operator=(const test_etcd&) = delete;

    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    [[nodiscard]] std::uint16_t port(std::size_t node = 0) const { return nodes_[node].client; }
    [[nodiscard]] std::string address(std::size_t node = 0) const {
        return "127.0.0.1:" + std::to_string(port(node));
    }
    // All of them, with commas.
    [[nodiscard]] std::string addresses() const;
    [[nodiscard]] ::pid_t pid(std::size_t node = 0) const { return nodes_[node].pid; }

    // SIGSTOP, SIGCONT ...; returns when it has stopped.
    void signal(int number, std::size_t node = 0) const;
    void kill(std::size_t node = 0);  // SIGKILL, and it is gone
    // Begins it again with its data; returns when it answers.
    void start(std::size_t node = 0);
    // The node that leads, by the word of those that run; waits for one.
    [[nodiscard]] std::size_t leader() const;

    using output = process_output;
    // etcdctl of the same version, at all nodes that run; both outputs together.
    output ctl(const std::vector<std::string>& words) const;
    // The same, which must succeed.
    std::string must(const std::vector<std::string>& words) const;
    // User root with this password; from now on everybody logs in.
    void demand_login(const std::string& password) const;

private:
    struct process {
        std::uint16_t client = 0;
        std::uint16_t peer = 0;
        std::uint16_t health = 0;
        ::pid_t pid = -1;
    };
    void choose_ports();
    void begin(std::size_t i);
    void wait_until_healthy();
    [[nodiscard]] bool is_healthy(std::size_t i);
    [[nodiscard]] std::vector<std::string> words_of(std::size_t i) const;
    [[nodiscard]] output run(std::vector<std::string> words) const;

    const etcd_settings settings_;
    std::filesystem::path folder_;
    std::vector<process> nodes_;
};

}  // namespace trinco::detail::test
