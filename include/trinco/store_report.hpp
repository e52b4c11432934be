// What the conversation between a registry and its store has been like: what was asked, how long
// the answers took, what went wrong. For dashboards and for whoever asks why.
//
// A plain value, a copy of the moment: copy it freely, one thread at a time. Everything counts
// from the making of the registry, over all its breakers; nothing is ever reset, so that two
// reports subtract. Each number is right by itself; of numbers that belong together one may be a
// few microseconds ahead.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "trinco/breaker_types.hpp"
#include "trinco/duration_histogram.hpp"

namespace trinco {

// Requests that failed, by the code (trinco/error.hpp).
struct store_errors {
    std::uint64_t unavailable = 0;  // not reached, or not taken: nothing happened
    std::uint64_t unanswered = 0;   // unknown_outcome: no answer in time
    std::uint64_t busy = 0;         // a bound was reached
    std::uint64_t denied = 0;       // credentials or rights
    std::uint64_t other = 0;        // refused for what it said, or what it met: a foreign key
};

// On the wire, all connections together, as of the last answer. Zeros where there is no wire
// (memory:, local:).
struct store_wire {
    std::uint64_t requests = 0;   // commands sent
    std::uint64_t bytes_out = 0;  // before encryption
    std::uint64_t bytes_in = 0;
    std::uint64_t reconnects = 0;    // connections made anew
    std::uint64_t redirections = 0;  // of a cluster: MOVED and ASK
};

struct store_report {
    std::string store;                          // its URL without secrets; empty: there is none
    std::chrono::milliseconds measured_for{0};  // since the registry was made

    // Exchanges carry outcomes and compare views, up to 64 breakers at once.
    std::uint64_t exchanges = 0;  // sent, repetitions included
    std::uint64_t urgent_exchanges = 0;
    std::uint64_t exchanges_failed = 0;
    std::uint64_t batches = 0;  // of outcomes of one breaker, each once
    std::uint64_t batches_retried = 0;
    counts dropped;  // outcomes of batches that stayed unanswered for a whole window: nobody
                     // counted them, or nobody said so

    // Strict calls.
    std::uint64_t looks = 0;
    std::uint64_t looks_failed = 0;
    std::uint64_t strict_exchanges = 0;  // where a look was not enough

    std::uint64_t probes_asked = 0;
    std::uint64_t probes_granted = 0;
    std::uint64_t probes_overdue = 0;  // settled as failures, because their calls took too long
    std::uint64_t settlements = 0;     // of probes, repetitions included

    store_errors errors;
    // Why the store does not serve as it should, or refuses one of the breakers, as of the last
    // answer or its absence; one sentence without secrets. Where the store says nothing at all it
    // is that. Empty: nothing is wrong, or the breakers rest and nobody has asked.
    std::string trouble;
    std::uint64_t gaps = 0;         // notices were missed, and everything was asked for
    std::uint64_t new_servers = 0;  // another server answered, or another life of it

    // No answer for degraded_after: breakers decide alone.
    bool degraded = false;
    std::chrono::milliseconds degraded_for{0};  // the running stretch
    std::uint64_t times_degraded = 0;
    std::chrono::microseconds degraded_time{0};  // the running stretch included

    // From asking to the answer, of those that were answered.
    duration_histogram exchange_round_trips;
    duration_histogram look_round_trips;
    duration_histogram probe_round_trips;
    // Inside the store: of a script, a transaction; by breaker. Empty for memory:, which does not
    // measure it.
    duration_histogram exchange_cost;
    duration_histogram look_cost;

    store_wire wire;
};

}  // namespace trinco
