// The breakers of a process, by name.
//
//     trinco::breaker_registry breakers;           // this process alone
//     trinco::breaker_registry breakers(store);    // shared with everybody who opens the store
//
//     breakers.configure("payments", {.failure_rate = 0.3});
//     breakers.get("payments").call([&] { ... });
//
// Identity     One name is one breaker for the life of the registry, whoever asks and whenever: two
//              parts of a program that guard the same dependency share one state. Nothing is ever
//              removed.
// Bound        At most registry_options::most names (default 10,000), because names often come from
//              outside (host names, tenants) and each breaker takes memory for ever; beyond it
//              get() refuses with errc::busy.
// Options      A breaker is made at the first get() of its name with the options configured for the
//              name before, else with the defaults. They do not change afterwards; a fleet's
//              governing options do, and are shown by snapshot().
// Fleet        Made over a store, all breakers are shared through it and one background
//              conversation carries the news of all of them. The registry keeps the store open.
// Threads      Every member from any thread.
// Ownership    It must outlive the permits and the callers of its breakers.
// Closing      Destroying it sends what was not sent yet, for at most twice the store_timeout of
//              the defaults. While the store's thread is held up (by an event callback that does
//              not return) that takes 2 s and four times that timeout at most; the rest then ends
//              on that thread.
// fork         In a child, get() makes no more breakers over a store (errc::forked), and destroying
//              the registry there is harmless; see circuit_breaker.hpp for its breakers.
// Errors       breaker_error: errc::invalid (name or options, with one sentence; an empty store),
//              errc::busy (bound), errc::not_supported (a store without breakers), errc::forked.
// Cost         get() of a known name: a shared lock and one hash look-up, about 50 ns; keep the
//              reference where that matters.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trinco/breaker_options.hpp"
#include "trinco/circuit_breaker.hpp"
#include "trinco/store_report.hpp"

namespace trinco {

class store;

struct registry_options {
    // For names that are not configured. Default: breaker_options' own.
    breaker_options defaults{};
    // Most names. 1 ... 1,000,000. Default 10,000.
    std::size_t most = 10'000;
};

class breaker_registry {
public:
    explicit breaker_registry(const registry_options& options = {});
    explicit breaker_registry(const store& over, const registry_options& options = {});
    ~breaker_registry();
    breaker_registry(const breaker_registry&) = delete;
    breaker_registry& operator=(const breaker_registry&) = delete;

    // Options for the breaker that get() will make under this name. Throws errc::conflict when it
    // exists already with other options.
    void configure(std::string_view name, const breaker_options& options);

    // The breaker of this name, made at the first call. The reference stays valid as long as the
    // registry.
    [[nodiscard]] circuit_breaker& get(std::string_view name);
    // The twin without exceptions: null, and why.
    [[nodiscard]] circuit_breaker* get(std::string_view name, breaker_fault& why);
    // The breaker of this name if it has been made; never makes one.
    [[nodiscard]] circuit_breaker* find(std::string_view name) const;

    // In the order of their names.
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::size_t size() const;

    // What the conversation with the store has been like. Empty without a store. Never waits and
    // never fails, also while the store does not answer, in an event's callback, and in a child
    // after fork (as it was then). Cost: some microseconds.
    [[nodiscard]] store_report report() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace trinco
