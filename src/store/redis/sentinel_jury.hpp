// What all Sentinels together say of a primary that was away and is back at its address.
//
// A primary that was killed and has begun again, empty, calls itself a primary. Sentinels that have
// begun to replace it, or have done so and not told each other yet, know better: whoever follows it
// in that moment loses what he hands to it.
//
// Words      SENTINEL MASTER, asked of all at once. Who does not answer in time, refuses us or does
//            not know the name says nothing; when nobody says anything, all is well.
// Verdict    Not followed: when any that names it is replacing it, when two of those (or the only
//            one) cannot reach it, and when the one with the latest configuration names another
//            server, which is then where to go.
//
// The rules of core/loop.hpp hold. One question at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/loop.hpp"
#include "store/redis/redis_link.hpp"
#include "store/redis/redis_url.hpp"

namespace trinco::detail {

struct sentinel_word {
    stream_address primary;
    std::uint64_t epoch = 0;  // of the configuration: the greater one is the later
    bool unreachable = false;
    bool replacing = false;
};

// Of a reply to SENTINEL MASTER; nothing when there is none in it.
[[nodiscard]] std::optional<sentinel_word> word_in(const resp_reply& reply);

struct sentinel_verdict {
    std::optional<redis_refusal> refusal;     // nothing: it may be followed
    std::optional<stream_address> elsewhere;  // where the primary is instead
};

// On the server at `is_back`.
[[nodiscard]] sentinel_verdict judge_return(const std::vector<sentinel_word>& words,
                                            const stream_address& is_back);

class sentinel_jury {
public:
    using on_words = unique_function<void(std::vector<sentinel_word>)>;

    // All outlive it. Addresses have the target's TLS.
    sentinel_jury(loop& on, stream_factory& streams, const redis_target& target)
        : on_(on), streams_(streams), target_(target) {}

    // Completes when all have spoken, at the latest at `by`; later, at most once.
    [[nodiscard]] op ask(deadline by, on_words done);

private:
    loop& on_;
    stream_factory& streams_;
    const redis_target& target_;
};

}  // namespace trinco::detail
