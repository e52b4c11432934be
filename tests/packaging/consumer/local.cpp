// Opens the store local: with nothing but the installed headers. The argument is the file.
#include <string>

#include <trinco/local.hpp>
#include <trinco/store.hpp>

int main(int argc, char** argv) {
    if (argc != 2) return 1;
    const std::string url = std::string("local:") + argv[1];
    const trinco::store store = trinco::open(url, {trinco::drivers::local()});
    return store.has_breakers() && store.has_locks() ? 0 : 2;
}
