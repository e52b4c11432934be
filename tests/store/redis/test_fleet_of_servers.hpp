// Real servers that belong together, for tests: one, or a primary with a replica and three
// Sentinels, or a cluster of three primaries with a replica each. On 127.0.0.1, in a temporary
// folder, without persistence; they end with the object, and with the thread that began them.
//
// Servers listen at a port and at a Unix socket, by which a test asks them (see test_connection).
// A port that somebody took between being looked for and being used costs another attempt.
// Threads: one at a time. Whatever cannot be done in 30 s throws std::runtime_error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/store/redis/test_server.hpp"

namespace trinco::detail::test {

// PEM files. With them servers speak TLS alone, with each other too, but at their Unix sockets.
struct fleet_tls {
    std::string certificate;
    std::string key;
    std::string authority;
};

// One process of a fleet, which may be killed and begun again at the same place.
class fleet_process {
public:
    // Its words on the command line, when it listens at this port. Begins it.
    using words_at = std::function<std::vector<std::string>(const fleet_process&)>;
    fleet_process(std::string program, std::filesystem::path folder, words_at words);
    ~fleet_process();
    fleet_process(const fleet_process&) = delete;
    fleet_process& operator=(const fleet_process&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::uint16_t bus_port() const noexcept { return bus_port_; }  // of a cluster
    [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }  // -1: it was killed
    [[nodiscard]] std::string folder() const { return folder_.string(); }
    [[nodiscard]] std::string socket() const { return (folder_ / "s").string(); }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

    // Returns when it answers; at its first start at other ports when these were taken.
    void wait_until_it_answers();
    // Begins it again at the same ports, in the same folder; returns when it answers.
    void start();
    void signal(int number) const;  // SIGSTOP, SIGCONT ...
    void kill();                    // SIGKILL, and it is gone
    // One command on a connection of its own; throws when there is no answer.
    resp_reply call(const std::vector<std::string>& command) const;

private:
    void begin();
    void choose_ports();
    [[nodiscard]] bool has_ended();

    const std::string program_;
    const std::filesystem::path folder_;
    const words_at words_;
    std::uint16_t port_ = 0;
    std::uint16_t bus_port_ = 0;
    ::pid_t pid_ = -1;
};

// A folder that goes with the object.
class fleet_folder {
public:
    fleet_folder();
    ~fleet_folder();
    fleet_folder(const fleet_folder&) = delete;
    fleet_folder& operator=(const fleet_folder&) = delete;
    // A new one in it.
    [[nodiscard]] std::filesystem::path make(const std::string& name) const;

private:
    std::filesystem::path path_;
};

// Tries until it says true; throws after 30 s with what was waited for.
void wait_until(const std::string& what, const std::function<bool()>& is_so);

class single_server {
public:
    // `more`: words for it, beside ours.
    explicit single_server(const std::string& program, std::vector<std::string> more = {});

    [[nodiscard]] std::string url() const { return "redis://" + servers[0].address(); }
    std::deque<fleet_process> servers;  // one

private:
    fleet_folder folder_;
};

class sentinel_fleet {
public:
    // Returns when each Sentinel knows the two others and the replica. `more`: words for the
    // primary and the replica, beside ours.
    // `down_after`: a primary that has not answered for that long is replaced.
    explicit sentinel_fleet(const std::string& program, std::vector<std::string> more = {},
                            std::chrono::milliseconds down_after = std::chrono::milliseconds(600),
                            std::optional<fleet_tls> tls = {});

    static constexpr const char* name = "trinco-test";
    [[nodiscard]] std::string url() const;
    std::deque<fleet_process> servers;    // the first one begins as the primary
    std::deque<fleet_process> sentinels;  // a fail-over needs two of the three

    // The index of the server that most Sentinels name.
    [[nodiscard]] std::size_t primary() const;

private:
    void start_sentinels(const std::string& program, std::chrono::milliseconds down_after);
    [[nodiscard]] bool is_complete() const;

    fleet_folder folder_;
    std::vector<std::string> more_;
    std::optional<fleet_tls> tls_;
};

class cluster_fleet {
public:
    // Nodes 0, 1, 2 begin as the primaries of a third of the slots each, 3, 4, 5 as their replicas.
    // Returns when all nodes agree. `more`: words for each node, beside ours.
    // `down_after`: a node that has not answered for that long is replaced.
    explicit cluster_fleet(const std::string& program, std::vector<std::string> more = {},
                           std::chrono::milliseconds down_after = std::chrono::milliseconds(1'500),
                           std::optional<fleet_tls> tls = {});

    static constexpr unsigned slots = 16'384;
    [[nodiscard]] std::string url() const;
    std::deque<fleet_process> nodes;

    // Its id in the cluster.
    [[nodiscard]] std::string id(std::size_t node) const;
    // The index of the node that owns the slot, by the word of `asked`.
    [[nodiscard]] std::size_t owner(unsigned slot, std::size_t asked = 0) const;
    // Hands a slot with its keys over, as re-sharding does; between the steps, keys are asked for.
    // `between` runs when the slot is half handed over, before its keys are moved.
    void move_slot(unsigned slot, std::size_t to, const std::function<void()>& between = {});

private:
    void form();
    [[nodiscard]] bool agrees(std::size_t node) const;

    fleet_folder folder_;
};

}  // namespace trinco::detail::test
