// Servers for tests in other languages, and for people who want to look.
//
//     server_fleet single|sentinel|cluster [PROGRAM]
//
// starts them (see test_fleet_of_servers.hpp; without PROGRAM by what find_redis_server finds) and
// prints a line of JSON when they are ready:
//
//     {"url": "redis+sentinel://...", "processes": [
//         {"name": "server0", "port": 7001, "pid": 42, "socket": "/tmp/...", "folder": "/tmp/..."},
//         ...]}
//
// Names: server0; server0, server1, sentinel0, sentinel1, sentinel2; node0 ... node5. Signals may
// be sent to the pids. A line "kill NAME" on stdin ends one by SIGKILL, "start NAME" begins one
// again at its place (whatever had become of it); each is answered with the line above, as it is
// then, or with {"error": "..."}. All end when stdin does.
//
// Ends with 2 for wrong words, 3 when there is no server program, 1 when they do not start.
#include <deque>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/store/redis/test_fleet_of_servers.hpp"

namespace {

using namespace trinco::detail::test;
using named = std::vector<std::pair<std::string, fleet_process*>>;

void add(named& all, const std::string& name, std::deque<fleet_process>& some) {
    int number = 0;
    for (auto& one : some) all.emplace_back(name + std::to_string(number++), &one);
}

// Paths and URLs of these hold nothing that JSON would want to be written otherwise.
void show(const std::string& url, const named& all) {
    std::cout << R"({"url": ")" << url << R"(", "processes": [)";
    for (const auto& [name, one] : all) {
        std::cout << (one == all.front().second ? "" : ", ") << R"({"name": ")" << name
                  << R"(", "port": )" << one->port() << R"(, "pid": )" << one->pid()
                  << R"(, "socket": ")" << one->socket() << R"(", "folder": ")" << one->folder()
                  << R"("})";
    }
    std::cout << "]}" << std::endl;
}

void obey(const std::string& line, const named& all) {
    std::istringstream words(line);
    std::string verb;
    std::string name;
    words >> verb >> name;
    for (const auto& [its_name, one] : all) {
        if (its_name != name) continue;
        if (verb == "kill") return one->kill();
        if (verb == "start") return one->start();
    }
    throw std::runtime_error("say kill NAME or start NAME");
}

void serve(const std::string& url, const named& all) {
    show(url, all);
    for (std::string line; std::getline(std::cin, line);) {
        try {
            obey(line, all);
            show(url, all);
        } catch (const std::runtime_error& error) {
            std::cout << R"({"error": ")" << error.what() << R"("})" << std::endl;
        }
    }
}

int run(const std::string& kind, const std::string& program) {
    named all;
    if (kind == "single") {
        single_server one(program);
        add(all, "server", one.servers);
        serve(one.url(), all);
    } else if (kind == "sentinel") {
        sentinel_fleet fleet(program);
        add(all, "server", fleet.servers);
        add(all, "sentinel", fleet.sentinels);
        serve(fleet.url(), all);
    } else if (kind == "cluster") {
        cluster_fleet fleet(program);
        add(all, "node", fleet.nodes);
        serve(fleet.url(), all);
    } else {
        std::cerr << "server_fleet: say single, sentinel or cluster\n";
        return 2;
    }
    return 0;
}

}  // namespace

int main(int count, char** words) {
    if (count != 2 && count != 3) {
        std::cerr << "server_fleet: say single, sentinel or cluster, and perhaps a program\n";
        return 2;
    }
    const std::optional<std::string> program =
        count == 3 ? std::optional<std::string>(words[2]) : find_redis_server();
    if (!program) {
        std::cerr << "server_fleet: no redis-server and no valkey-server; see make servers\n";
        return 3;
    }
    try {
        return run(words[1], *program);
    } catch (const std::runtime_error& error) {
        std::cerr << "server_fleet: " << error.what() << '\n';
        return 1;
    }
}
