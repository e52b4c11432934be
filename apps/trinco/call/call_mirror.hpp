// What this machine's mirror of a server (mirror/server_mirror.hpp) is to one call of `trinco
// call`.
//
// Asking       The server is told again what it has lost. For how long a call asks it depends on
//              how it was a moment ago: as long as store_timeout, or a tenth of that while it was
//              away; one call every few seconds finds out at length. It ends as soon as the server
//              says why it will not answer.
// Standing in  The breaker that decides while the server does not answer; see mirror/stand_in.hpp.
// No writes    A server that answers and takes no writes (its memory is full, it is a replica) does
//              not hear of failures, and would say "closed" for ever. Then the one that stands in
//              decides beside it, in series, and counts; until the server has taken a write again.
// Afterwards   the one that stands in counts as well, and is made to agree with what the server
//              said while it counted. What it had said when it was asked is agreed on then, if it
//              was new, and never after the command: the server may have gone away meanwhile, and
//              the one that stands in have decided by itself.
//
// Nothing here is the call's failure. Threads: one. Cost: about 4 ms a call.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "apps/trinco/call/call_breaker.hpp"
#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/mirror/server_mirror.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class call_mirror {
public:
    // Nothing: see server_mirror::open.
    [[nodiscard]] static std::optional<call_mirror> open(const settings& with,
                                                         const std::string& breaker,
                                                         const call_rules& rules,
                                                         std::string& why_not);

    // Why the server has not counted what it should.
    struct hindrance {
        server_mirror::trouble_t kind;
        std::string why;
    };

    // Before `call` asks the server.
    void prepare(call_breaker& call);
    // Right after that: nothing, or why there was no answer.
    void was_asked(call_breaker& call, const std::optional<std::string>& why_not);

    // Whether the server took no writes when it was asked last.
    [[nodiscard]] bool decides_beside() const noexcept { return no_writes_.has_value(); }
    // Before it decides beside: what operators have said since the server last took a write.
    void catch_up(const call_breaker& call);

    // Where the breaker is kept that stands in, and the options of a call there: those of the
    // rules, but waiting longer than for a server that may be away.
    [[nodiscard]] const store& stand_in_store() const noexcept { return of_server_.stand_in(); }
    [[nodiscard]] const breaker_options& options() const noexcept { return options_; }

    // Right after a call that the server has decided was settled there. `why_not`: the server could
    // not count it. `has_counted`: the one that stands in has, by itself.
    void keep(const call_breaker& call, outcome what, const std::optional<hindrance>& why_not,
              bool has_counted);

private:
    call_mirror(std::string breaker, const call_rules& rules, server_mirror of_server);

    void note(const hindrance& what);
    void hear(const call_breaker& call);

    std::string breaker_;
    breaker_options options_;
    std::chrono::milliseconds store_timeout_;
    server_mirror of_server_;
    std::optional<server_mirror::trouble> away_;
    std::optional<server_mirror::trouble> no_writes_;
    detail::view last_view_;
    bool was_brief_ = false;
};

}  // namespace trinco::program
