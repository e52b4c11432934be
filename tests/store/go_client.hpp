// A process of Go's own client of a store (tests/store/etcd/go and tests/store/consul/go, which say
// what they understand), driven line by line. It ends with the object, and with the thread that
// began it.
//
// Threads: one at a time. Whatever cannot be done in 30 s throws std::runtime_error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace trinco::detail::test {

// For find_test_program.
inline constexpr const char* go_client_program = "etcd-interop";
inline constexpr const char* consul_go_client_program = "consul-interop";

class go_client {
public:
    // `ttl`: of the lease of each contender.
    go_client(const std::string& program, const std::string& endpoints,
              std::chrono::seconds ttl = std::chrono::seconds(60));
    ~go_client();  // ends the sessions first
    go_client(const go_client&) = delete;
    go_client& operator=(const go_client&) = delete;

    // One contender's command, such as "lock NAME".
    void send(const std::string& who, const std::string& command);
    // What this contender has said so far, without its name.
    [[nodiscard]] const std::vector<std::string>& said(const std::string& who);
    // Sends, and waits for what it says next.
    std::string ask(const std::string& who, const std::string& command);
    void kill();  // SIGKILL, and it is gone: its leases go on

private:
    // Reads what has come, or waits that long for something.
    void read(std::chrono::milliseconds wait);

    ::pid_t pid_ = -1;
    int ours_ = -1;  // its input and output
    std::string rest_;
    std::map<std::string, std::vector<std::string>> said_;
};

}  // namespace trinco::detail::test
