// Opens the store etcd: with nothing but the installed headers. Nobody listens there, which is no
// error of opening.
#include <trinco/etcd.hpp>
#include <trinco/store.hpp>

int main() {
    const trinco::store store = trinco::open("etcd://127.0.0.1:1", {trinco::drivers::etcd()});
    return store.has_locks() && !store.has_breakers() ? 0 : 2;
}
