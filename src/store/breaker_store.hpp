// The contract of a store of breakers: what fleet_sync asks of memory, SQLite, Redis.
//
// Threads, cancellation, deadlines, errors, repetition and time follow the rules at the head of
// core/loop.hpp. Beyond them:
//
//   identity    A store object speaks for one instance and its voter (breaker_identity), given when
//               it is opened.
//   atomicity   Each element of an exchange is atomic alone; the batch is not. An element that
//               fails has its own error. Verdicts come in the order of the news.
//   views       The sender's view is compared before its counts are booked, so a verdict's view is
//               never older than the sender's.
//   sequence    A seq at or below the last counted one of this instance and breaker is answered,
//               not counted. The caller repeats a batch unchanged until it is answered or dropped.
//   bounds      at most max_news elements an exchange (else the call is `busy` and nothing is done)
//               and max_slices slices an element (else that element is). Names follow
//               core/names.hpp, tokens and ids are not 0, rows of inspect are 1 ... 1000; anything
//               else is `invalid`.
//   cost        memory: one map access; local: one transaction a batch; redis: one pipelined
//               script per breaker. A look writes nothing anywhere.
//
// `remaining` of a view counts from the caller's own now() before the call, that of a notice from
// its arrival. Both can only be early, and a probe that comes early is refused.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/breaker/messages.hpp"
#include "core/loop.hpp"

namespace trinco::detail {

// The part of a `changed` notice by which calls are refused: the breaker is open, under no
// override. It lies in the notice.
struct opening {
    std::string_view breaker;
    era_t era = 0;
    std::chrono::milliseconds remaining{0};  // over 0
    std::string_view reason;
};

struct notice {
    enum class kind_t : std::uint8_t {
        changed,    // `fleet` is newer than before
        flush,      // send at once what you have
        gap,        // messages were missed: exchange everything you know
        new_server  // as gap, and another server (or another life of it) answers, which may have
                    // lost its last writes: leases of probes granted before may be unknown to it
    };
    kind_t kind = kind_t::changed;
    std::string breaker;  // empty for gap and new_server
    view fleet;
};

// All since the store was opened, of all its connections.
struct store_traffic {
    std::uint64_t requests = 0;   // commands sent
    std::uint64_t bytes_out = 0;  // before encryption
    std::uint64_t bytes_in = 0;
    std::uint64_t reconnects = 0;    // connections made anew
    std::uint64_t redirections = 0;  // of a cluster: MOVED and ASK
};

enum class store_standing : std::uint8_t {
    serves,   // or nothing is known
    refuses,  // it was reached, and refused what was asked last: nothing of that was done
    away      // there is no way to it now
};

class breaker_store {
public:
    virtual ~breaker_store() = default;

    // Compares views, books counts, decides. The first exchange registers the instance.
    [[nodiscard]] virtual op exchange(std::span<const news> batch, deadline by,
                                      completion<std::vector<verdict>> done) = 0;
    // Reads one breaker's view and changes nothing: strict mode asks so before every call. One
    // read-only script. The view is that of a moment after the call began; see glance for when it
    // is not enough. An absent breaker is shown, not made.
    [[nodiscard]] virtual op look(const look_request& request, deadline by,
                                  completion<glance> done) = 0;
    // Takes, settles or gives back one probe. take is idempotent in its token; a refusal extends
    // nothing; give_back frees the slot at once. An overdue lease is the caller's to settle as a
    // failure; the store reclaims it a tenth of probe_timeout later, as ignored.
    [[nodiscard]] virtual op probe(const probe_request& request, deadline by,
                                   completion<probe_reply> done) = 0;
    // An operator's hand; attributed, ordered with exchanges, idempotent in its id. Answers the
    // view after it.
    [[nodiscard]] virtual op control(const control_request& request, deadline by,
                                     completion<view> done) = 0;
    // A page of breakers whose name begins with `prefix` (a trailing * is allowed and ignored),
    // sorted by name, after `from`. Never on a hot path.
    [[nodiscard]] virtual op inspect(std::string_view prefix, std::string_view from,
                                     std::size_t rows, deadline by, completion<page> done) = 0;
    // Delivers changes of one breaker in (era, rev) order; after any interruption one gap or
    // new_server. One subscription a store object. It begins with no notice, but where another life
    // of the server may have gone before less than an hour ago (the longest probe_timeout), with
    // new_server: a newcomer cannot know what was lost with it (redis does not know when that was,
    // and tells nothing: docs/decisions/0021).
    [[nodiscard]] virtual op subscribe(unique_function<void(const notice&)> on_notice) = 0;
    // Before a notice that a closed breaker has opened, and only where the store can say it sooner
    // than the notice itself, which follows within a few milliseconds unless the connection ends.
    // Whoever is asked refuses calls from now on and says whether it does; must do nothing else.
    // Empty: nobody is asked any more.
    virtual void foretell(unique_function<bool(const opening&)> /*on_opening*/) {}
    // Finishes or abandons what is under way, in bounded time. Nothing may be called afterwards.
    [[nodiscard]] virtual op stop(deadline by, completion<int> done) = 0;

    // Why it does not serve as it should, one sentence without secrets; empty when it does, or when
    // nothing is known. The loop's thread.
    [[nodiscard]] virtual std::string trouble() const { return {}; }
    // Whether it does what it is asked, as far as is known; `trouble` says why not. The loop's
    // thread.
    [[nodiscard]] virtual store_standing standing() const { return store_standing::serves; }
    // Whether something was sent that may have been done without its caller's knowing: it has no
    // answer yet, or its connection ended before one. A refusal is an answer. The loop's thread.
    [[nodiscard]] virtual bool in_doubt() const { return false; }
    // What went over the wire for it so far; the loop's thread. Zeros where there is no wire.
    [[nodiscard]] virtual store_traffic traffic() const { return {}; }
};

}  // namespace trinco::detail
