// What an operator says to a server, and the mirror of the machine on which it is said
// (mirror/server_mirror.hpp). Without it the mirror would go on telling the calls of this machine,
// and a server that has lost its data, what held before.
//
// Before the word  a server that has forgotten the breaker, or is back with an older state, is told
//                  it again: so the word finds what it speaks of. What somebody else has said there
//                  meanwhile is later, and stays (mirror/told.hpp). Not by an exchange, as calls
//                  do: whoever exchanges is an instance, and his machine a voter.
// After it         the mirror hears what holds now; what the machine's calls decide by while the
//                  server is away is made to agree.
//
// Nothing here is the operator's failure: where there is no mirror, nothing happens. The mirrors of
// other machines, and of other users of this one, hear of it with their next call.
// Threads: one.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/mirror/server_mirror.hpp"
#include "core/breaker/messages.hpp"

namespace trinco::program {

class mirrored_word {
public:
    mirrored_word(const settings& with, std::string breaker);

    void before(const breakers_place& in) const;
    // `what` was carried out, and `now` is what holds.
    void after(const breakers_place& in, const detail::control_request& what,
               const detail::view& now);

private:
    void bring_back_state(const breakers_place& in, const detail::view& state) const;
    // `there`: the stamp of those that govern. They get a new one, and are then the latest.
    void bring_back_options(const breakers_place& in, std::uint64_t there) const;

    std::string breaker_;
    std::optional<server_mirror> mirror_;
};

}  // namespace trinco::program
