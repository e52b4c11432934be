// The breaker that stands in for one of a server on this machine: kept in agreement with what the
// server says, so that it is warm when it has to decide alone. Then it opens, probes and closes by
// itself.
//
// Agreement   is an operator's: tripped, reset, overridden, set, as the server's is. The views of
//             the two are never compared, and no era of one is the other's: taking a view over
//             would forbid probes for a probe_timeout, because leases may have been lost with the
//             record of whoever brought it. Here are no others'.
// Half open   there is open here, for a random part of open_for/2: what the design has for who
//             inherits a breaker that is probed. Leases on the server bind nobody here.
// Not kept    backoff and ramp: they begin anew.
//
// Threads: one. Cost: one read; a transaction for what is counted, and one for each thing that
// differs.
#pragma once

#include <chrono>
#include <string>

#include "apps/trinco/mirror/told.hpp"
#include "core/breaker/messages.hpp"
#include "trinco/breaker_types.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class stand_in {
public:
    using milliseconds = std::chrono::milliseconds;

    // `kept_in` must outlive it.
    stand_in(const store& kept_in, std::string breaker);

    // `set_for`: how long options that an operator has set still govern; 0: nobody knows.
    void agree(const told& with, milliseconds set_for = milliseconds(0));
    // Closes it, with an empty window.
    void begin_anew(const std::string& reason);
    // The override alone: the state is this machine's own business.
    void agree_on_override(const detail::view& with);
    // `governing`: what the server's options are.
    void count(const counts& n, const std::string& governing);

private:
    void read();
    void put_options(const told_options& with, milliseconds set_for);
    void put_state(const told& with);
    void put_override(const detail::view& with);
    void operate(detail::control_request what);

    const store& kept_in_;
    std::string breaker_;
    detail::report here_;
    bool is_read_ = false;
    bool has_changed_ = false;  // of state: what is counted now belongs to no window
};

}  // namespace trinco::program
