// What this machine remembers of a breaker whose store is a server, for the time in which the
// server does not answer `trinco call`: in its store local: (settings: breakers.mirror).
//
// Stands in     the breaker of the same name in the namespace "NAMESPACE:stand-in:SERVER". After
//               each call it is made to say what the server said, and counts how the call ended; so
//               it is warm when it has to decide alone. Then it opens, probes and closes by itself.
// Remembers     in the namespace "NAMESPACE:mirror:SERVER": what the server said last, and nothing
//               of what local: decided alone. A server that has lost its data, or goes on with
//               older ones, is told it again. One machine's own opening never reaches the fleet.
// SERVER        see mirror_names.hpp: what one server said is never told to another one.
//
// Nothing here is the call's failure: where local: cannot be opened or written, there is no mirror.
// Threads: one. Cost: two stores opened, three reads and two small transactions a call.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/trinco/call/call_breaker.hpp"
#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/config/settings.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class call_mirror {
public:
    // Nothing: the store is this machine's own, or mirror is "none", or cannot be opened.
    [[nodiscard]] static std::optional<call_mirror> open(const settings& with,
                                                         const std::string& breaker,
                                                         const call_rules& rules);

    // What the server said last, and the options that governed; nothing when that is longer ago
    // than key_ttl, or never was.
    struct told {
        detail::view fleet;
        std::string options;
    };
    [[nodiscard]] std::optional<told> last_heard() const;

    // Where the breaker is kept that stands in, and the options of a call there: those of the
    // rules, but waiting longer than for a server that may be away.
    [[nodiscard]] const store& stand_in() const noexcept { return stand_in_; }
    [[nodiscard]] const breaker_options& options() const noexcept { return options_; }

    // After a call that the server has decided.
    void keep(const call_breaker& call, outcome what);

private:
    call_mirror(std::string breaker, const call_rules& rules, store stand_in, store memory);
    [[nodiscard]] std::optional<detail::report> read(const store& from) const;

    std::string breaker_;
    breaker_options options_;
    store stand_in_;
    store memory_;  // empty when it could not be opened
};

}  // namespace trinco::program
