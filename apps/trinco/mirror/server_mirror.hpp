// What this machine remembers of a server, in its store local: (settings: breakers.mirror), for
// `trinco call` while the server does not answer, and for the server when it has lost its data.
//
// Told        the view of each breaker as the server told it last, and the options that governed
//             there. Nothing of what this machine decided alone.
// Trouble     why the server could not be asked a moment ago, or took no writes, so that not every
//             call finds out by itself. It is kept as the state of two breakers of the program's
//             own, "away" and "no-writes", beside the options: a user's breaker of such a name
//             shares nothing but the row.
// Stands in   the store of the breakers that decide and count for this machine alone
//             (stand_in.hpp).
// Names       see mirror_names.hpp: what one server said is never told to another one.
// Kept        a breaker, for key_ttl (1 h) beyond what it was told of last.
//
// Nothing here is anybody's failure: where local: cannot be opened, there is no mirror, and whoever
// wants to know is told why; what cannot be read was never told. Threads: one. Cost: three stores
// opened, about 1 ms; a transaction each for what is read or changed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/mirror/told.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class server_mirror {
public:
    using milliseconds = std::chrono::milliseconds;

    // Of a file that others may be writing to, on a machine that may be busy: without it a call
    // would go unprotected. It answers within a millisecond or two.
    static constexpr milliseconds patience{2'000};

    // Nothing: the store is this machine's own, or the mirror is "none", or cannot be opened.
    // `instance`: who counts in it; empty: this process. `why_not`: one sentence, where it cannot
    // be opened.
    [[nodiscard]] static std::optional<server_mirror> open(const settings& with,
                                                           std::string_view instance = {},
                                                           std::string* why_not = nullptr);

    // What the server said last; era 0 when that is too long ago, or never was.
    [[nodiscard]] detail::view last_view(const std::string& breaker) const;
    [[nodiscard]] told_options last_options(const std::string& breaker) const;
    // Options without a text are not known, and leave what is remembered of them.
    void remember(const std::string& breaker, const told& what);

    enum class trouble_t : std::uint8_t { away, no_writes };
    struct trouble {
        std::string why;
        milliseconds left;  // 0: it is worth finding out again
    };
    // The last one of a kind that was not over.
    [[nodiscard]] std::optional<trouble> has(trouble_t kind) const;
    void note(trouble_t kind, const trouble& what);
    void is_over(trouble_t kind);

    [[nodiscard]] const store& stand_in() const noexcept { return stand_in_; }

private:
    server_mirror(store stand_in, store memory, store server);

    store stand_in_;
    store memory_;
    store server_;
};

}  // namespace trinco::program
