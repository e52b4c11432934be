// Opens the store consul: with nothing but the installed headers. Nobody listens there, which is no
// error of opening.
#include <trinco/consul.hpp>
#include <trinco/store.hpp>

int main() {
    const trinco::store store = trinco::open("consul://127.0.0.1:1", {trinco::drivers::consul()});
    return store.has_locks() && !store.has_breakers() ? 0 : 2;
}
