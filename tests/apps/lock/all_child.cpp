// Takes all of some locks at a time, again and again, and checks that nobody else has one of them:
//
//     all_child URL TTL TIMES FOLDER NAME...
//
// The TTL is in seconds. While it has them it makes a folder of each name, which only one can, one
// after another. Prints how often it had them; ends with 1 when somebody else was in.
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "trinco/consul.hpp"
#include "trinco/etcd.hpp"
#include "trinco/lock_all.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace {

bool visit(const std::vector<std::string>& folders) {
    for (const auto& one : folders) {
        if (::mkdir(one.c_str(), 0700) != 0) return false;
    }
    ::poll(nullptr, 0, 5);  // so that others come
    for (const auto& one : folders) {
        if (::rmdir(one.c_str()) != 0) return false;
    }
    return true;
}

int run(const std::string& url, std::chrono::seconds ttl, int times, const std::string& folder,
        const std::vector<std::string>& names) {
    const auto where = trinco::open(url, {trinco::drivers::consul(), trinco::drivers::etcd()});
    trinco::session on(where, {.ttl = ttl});
    std::vector<std::string> folders;
    for (const auto& name : names) folders.push_back(folder + "/" + name);
    int had = 0;
    while (had < times) {
        trinco::lock_all all(on, names);
        all.lock();
        if (!visit(folders)) {
            std::fputs("somebody else is in\n", stderr);
            return 1;
        }
        all.unlock();
        ++had;
    }
    std::printf("%d\n", had);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6) return 64;
    try {
        const std::chrono::seconds ttl(std::atoi(argv[2]));
        return run(argv[1], ttl, std::atoi(argv[3]), argv[4], {argv + 5, argv + argc});
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 2;
    }
}
