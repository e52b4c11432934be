// The messages between an instance and the fleet's breaker: what record::apply takes and gives, and
// what every store carries. Plain values; durations only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "core/breaker/view.hpp"

namespace trinco::detail {

// Who speaks. An instance is a process, a voter a failure domain (by default the machine); both
// 1-64 of [A-Za-z0-9._:-]. Quorums count voters.
struct breaker_identity {
    std::string instance;
    std::string voter;
};

inline constexpr std::size_t max_news = 64;
inline constexpr std::size_t max_slices = 128;
// Eras, revs, stamps and counts of one message stay below these; what exceeds them is `invalid`.
// 2^53: a number of Lua and of JSON holds it exactly.
inline constexpr std::uint64_t max_era = std::uint64_t{1} << 53;
inline constexpr std::uint64_t max_count = std::uint64_t{1} << 40;
inline constexpr std::size_t max_options_text = 2048;
inline constexpr std::size_t max_reason = 200;
inline constexpr std::size_t max_who = 64;

// What an instance has to say about one breaker. Immutable once sent.
struct news {
    std::string breaker;
    // Of the sender's view all but one member is what it last heard. options_stamp is that of the
    // governing options *text which it holds* (0: none yet), not of a notice that it has seen:
    // a stamp that differs from the store's is how it asks for the text.
    view mine;
    std::uint64_t seq = 0;      // 0: nothing to count, only compare views
    std::vector<slice> slices;  // outcomes of mine.era, oldest first
    counts stale;               // outcomes of older eras: lifetime totals only
    // With own_stamp = 0 the options this process was configured with (core/breaker/policy.hpp,
    // to_text), sent until a verdict shows own_stamp, and when one shows 0 again. Otherwise the
    // governing options, whose stamp is mine.options_stamp, sent when the last verdict said
    // send_options. Else empty.
    std::string options;
    std::uint64_t own_stamp = 0;  // of this process's own options; 0: not yet stamped
};

// The store's answer about one breaker.
struct verdict {
    std::error_code error;
    view fleet;
    bool counted = false;  // false: this seq had been counted already, or was 0
    counts window;         // the fleet's
    std::uint32_t voters_failing = 0;
    std::uint32_t live = 0;  // voters heard within live_for
    std::uint16_t probes_left = 0;
    // The sender's voter failed its probes in the half-open era before, and the fleet closed (or
    // goes on) without it: its own breaker opens when the fleet's closes.
    bool set_aside = false;
    // Pacing: the store spreads the live instances so that one breaker costs it a bounded rate.
    std::chrono::milliseconds next_exchange{0};
    // Assigned to the sender's own options, or as sent; of who sent none the latest. 0: the store
    // knows nobody's own, and wants the sender's with the next exchange.
    std::uint64_t own_stamp = 0;
    std::string options;  // the governing ones, when the sender's stamp was older
    // The store has lost the governing options, or the sender knows newer ones: send them with the
    // next exchange (now: no probe is granted meanwhile).
    bool send_options = false;
    std::chrono::microseconds cost{0};  // measured inside the script or transaction
};

// One look before a call, without news.
struct look_request {
    std::string breaker;
    view mine;  // as in news
};

// What it shows. Nothing was changed, nobody registered, no time to live prolonged.
struct glance {
    view fleet;
    // The view alone is not enough to go by: the store knows nothing of this breaker, or less than
    // the sender; it would tell governing options or ask for them; or an exchange would decide
    // something now (a suspicion that is due, an override or set options that have run out). The
    // sender has to exchange before it relies on anything.
    bool exchange_first = false;
    std::chrono::microseconds cost{0};  // as in verdict
};

enum class probe_step : std::uint8_t { take, success, failure, give_back };

struct probe_request {
    std::string breaker;
    view mine;
    probe_step step = probe_step::take;
    std::uint64_t token = 0;  // random, the caller's, not 0; names the lease ever after
    // Length asked for; 0, or more than probe_timeout: probe_timeout. It counts from before the
    // first request with this token: a repeated take is granted again but not prolonged.
    std::chrono::milliseconds lease{0};
};

struct probe_reply {
    // take: leased. Other steps: the lease was known and of the running era; a repetition is
    // answered like the first.
    bool granted = false;
    std::chrono::milliseconds retry_after{0};  // of a refusal; at least 10 ms while not closed
    view fleet;
    bool set_aside = false;  // as in verdict
    std::uint32_t live = 0;
};

enum class control_verb : std::uint8_t {
    trip,
    reset,
    force_open,
    disable,
    observe,
    resume,
    set,
    unset,
    forget
};

struct control_request {
    std::uint64_t id = 0;  // random; the same id is carried out once
    std::string breaker;
    std::string who;
    std::string reason;
    control_verb verb = control_verb::trip;
    std::chrono::milliseconds expires{0};  // 0: the verb's default (overrides 24 h, set 30 days)
    std::string options;                   // of `set`: key=value pairs, space-separated
};

struct share {
    std::string instance;
    std::string voter;
    counts window;
    std::chrono::milliseconds heard{0};  // ago
    std::uint64_t options_stamp = 0;
};

struct report {
    std::string breaker;
    verdict now;
    std::string options;       // the governing ones
    bool options_set = false;  // by an operator, rather than by a process's configuration
    // Of what was set; 0: it is over, and the next exchange, probe or control ends it.
    std::chrono::milliseconds set_remaining{0};
    counts totals;  // lifetime
    std::vector<share> shares;
};

struct page {
    std::vector<report> rows;  // by name
    std::string next;          // hand it to `from` for the next page; empty: this was the last
};

}  // namespace trinco::detail
