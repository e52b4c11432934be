// Uses each component once, with nothing but the installed headers.
#include <trinco/breaker_registry.hpp>
#include <trinco/circuit_breaker.hpp>
#include <trinco/memory.hpp>
#include <trinco/mutex.hpp>
#include <trinco/session.hpp>
#include <trinco/store.hpp>

int main() {
    trinco::circuit_breaker alone("alone");
    if (alone.call([] { return 7; }) != 7) return 1;

    const trinco::store store = trinco::open("memory:", {trinco::drivers::memory()});
    trinco::breaker_registry breakers(store);
    if (breakers.get("shared").call([] { return 7; }) != 7) return 2;

    trinco::session session(store);
    trinco::mutex mutex(session, "consumer");
    if (!mutex.try_lock()) return 3;
    return mutex.fencing_token() == 0 ? 4 : 0;
}
