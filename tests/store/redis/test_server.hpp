// A real server for tests: its own process in a folder of its own, on a Unix socket only, without
// persistence; and a blocking connection to it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "wire/resp/resp_message.hpp"
#include "wire/resp/resp_reader.hpp"

namespace trinco::detail::test {

// The path of redis-server or valkey-server: the one that TRINCO_REDIS_SERVER names, else of PATH,
// else of the folder in which `make servers` keeps them. Nothing when there is none.
[[nodiscard]] std::optional<std::string> find_redis_server();
// The same for one of the two: "redis" or "valkey". What TRINCO_REDIS_SERVER names counts for the
// one that it is named after.
[[nodiscard]] std::optional<std::string> find_server_of(const std::string& kind);

class test_connection {
public:
    // Throws when nobody listens.
    explicit test_connection(const std::string& socket);
    test_connection(const test_connection&) = delete;
    test_connection& operator=(const test_connection&) = delete;
    ~test_connection();

    void send(const std::vector<std::string>& command);
    // Throws when the connection ends, or after 10 s.
    [[nodiscard]] resp_reply receive();
    resp_reply call(const std::vector<std::string>& command);
    // Sends now what receive and call would send first.
    void flush();

private:
    int socket_;
    std::string unsent_;
    resp_reader in_;
};

class test_server {
public:
    // Throws when it does not answer within 10 s. More arguments of the program may follow.
    explicit test_server(std::string program, std::vector<std::string> arguments = {});
    test_server(const test_server&) = delete;
    test_server& operator=(const test_server&) = delete;
    ~test_server();

    [[nodiscard]] std::string socket() const { return (folder_ / "s").string(); }
    // A file in the server's folder.
    [[nodiscard]] std::string file(const std::string& name) const {
        return (folder_ / name).string();
    }
    // Ends it at once and begins it again at the same place: all that it did not save is lost.
    void restart();
    // SIGKILL, until start; SIGSTOP and SIGCONT.
    void kill() noexcept;
    void start();
    void send(int signal) const noexcept;

private:
    void clean_up() noexcept;

    std::string program_;
    std::vector<std::string> arguments_;
    std::filesystem::path folder_;
    ::pid_t process_ = -1;
};

}  // namespace trinco::detail::test
