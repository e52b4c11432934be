// Opens the store redis: with nothing but the installed headers. Nobody listens there, which is no
// error of opening.
#include <trinco/redis.hpp>
#include <trinco/store.hpp>

int main() {
    const trinco::store store =
        trinco::open("redis+unix:/nowhere/at/all", {trinco::drivers::redis()});
    return store.has_breakers() && !store.has_locks() ? 0 : 2;
}
