// Three nodes of etcd on 127.0.0.1, which the demonstration starts itself, with the timings that
// etcd has by default. Their data lies in the act's scratch folder; they end with the object, and
// with the thread that started them.
//
// Threads: one. Errors are values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/trinco/demo/cast.hpp"
#include "apps/trinco/demo/stage.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program::demo {

inline constexpr std::size_t etcd_node_count = 3;

// The file to be started: the one that was named; without a name `etcd` of PATH, or beside this
// program. The problem: there is none, and how to get one.
[[nodiscard]] std::variant<std::filesystem::path, problem> find_etcd(
    const std::optional<std::string>& named);

class etcd_nodes {
public:
    // Returns when all follow a leader: within seconds, at most ten, or when the act is over. Ports
    // that somebody took meanwhile cost another attempt. The problem has what etcd said last.
    [[nodiscard]] static std::variant<etcd_nodes, problem> start(const stage& on);

    [[nodiscard]] std::string url() const;  // of all three
    // The one that leads, by its own word; nothing while there is none. Asks each, at most 0.2 s.
    [[nodiscard]] std::optional<std::size_t> leader() const;
    // SIGKILL, and it is gone.
    void kill(std::size_t which);

private:
    struct ports {
        std::uint16_t client = 0;
        std::uint16_t peer = 0;
        std::uint16_t metrics = 0;
    };
    struct node {
        ports at;
        cast process;
        bool killed = false;
    };
    [[nodiscard]] static std::optional<problem> begin(const stage& on, int attempt, etcd_nodes& to);
    [[nodiscard]] bool all_follow() const;

    std::vector<node> nodes_;
};

}  // namespace trinco::program::demo
