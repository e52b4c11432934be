// What asking a store for one breaker costs now, by a few reads.
#pragma once

#include <string>

#include "apps/trinco/output/distribution.hpp"
#include "apps/trinco/output/json.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

struct measured_reads {
    distribution round_trip;  // from sending to reading, without our own threads
    distribution script;      // the server's own time
    // Valkey and Redis from 7.2 show a script the same time from its beginning to its end.
    [[nodiscard]] bool is_script_told() const noexcept;
};

// Up to fifty looks, which change nothing, for a third of a second at most; fewer, and none, when
// the store does not answer. For stores that are servers: of others there is nothing to be seen.
[[nodiscard]] measured_reads measure_reads(const store& at, const std::string& breaker);

// The end of the page, and {"round_trip", "script"}; empty and null without reads.
[[nodiscard]] std::string text_of(const measured_reads& all);
[[nodiscard]] std::string json_text_of(const measured_reads& all);

}  // namespace trinco::program
