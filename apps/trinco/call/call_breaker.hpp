// The breaker of one call: a process that asks once, runs a command, says how it ended, and is
// gone.
//
// It works on the store's contract, not on a circuit_breaker: that one spares round trips by
// knowing, and a process that has just begun knows nothing; and what it would send in the
// background has to be at the store before the process ends.
//
// Asking       One look, which registers nothing and changes nothing, and core/breaker/series with
//              a closed local breaker. A probe is taken when one is due, for no longer than the
//              call can last: the slot of a process that is killed is free again after that and a
//              tenth of probe_timeout.
// Settling     One exchange with the outcome; of a probe its settlement, then the totals. Refusals
//              are counted as well.
// Opening      A record opens on a cold window only after a moment in which others could have said
//              more (core/breaker/record.hpp). A process that saw the threshold crossed waits for
//              that and asks once more; the next process may come a minute later.
// Options      Those that were given are stamped, as any process's are, and govern; without any,
//              what governs stays, and the defaults begin a breaker that has none yet. So a script
//              that calls what a service calls, too, does not throw away the service's options, nor
//              its window.
// Instance     A name for every process would make the record carry thousands of them for ten
//              minutes. All calls of this life of the machine share a few names, and number their
//              batches by the boot clock. A batch that was overtaken by a later number was not
//              counted and gets another number. A batch whose answer is lost is sent again under
//              its number; when that was overtaken meanwhile, its outcome may be lost, but no
//              outcome ever counts twice.
//
// Threads: one, not the store's. The store must outlive it. Each question waits for the store at
// most store_timeout: one to ask, up to four when a probe is due; settling tries again for twice
// that, or for once when there is another store to count in (be_brief).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/mirror/told.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/breaker/messages.hpp"
#include "core/breaker/policy.hpp"
#include "core/breaker/series.hpp"
#include "trinco/permit.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

// The few names: "host:call:1f3c9a02:7".
[[nodiscard]] std::string call_instance_name();

// What a view says to series; `remaining` counts from now.
[[nodiscard]] detail::fleet_side fleet_side_of(const detail::view& fleet) noexcept;

// What is said about an admitted share of calls while recovering: 0.1 at first, 1 at the end.
[[nodiscard]] double ramp_share(const detail::view& fleet,
                                std::chrono::milliseconds recovery_ramp) noexcept;

struct admission {
    enum class kind_t : std::uint8_t {
        counted,
        probe,
        uncounted,  // observing: it would have been refused
        refused,
        unanswered  // the store's error
    };
    kind_t kind = kind_t::unanswered;
    refusal why;            // of a refusal
    std::error_code error;  // of no answer
};

class call_breaker {
public:
    using milliseconds = std::chrono::milliseconds;

    call_breaker(const store& at, std::string name, const breaker_options& options,
                 bool configured);
    // A probe that was not settled is given back.
    ~call_breaker();
    call_breaker(const call_breaker&) = delete;
    call_breaker& operator=(const call_breaker&) = delete;

    // Before asking: what this store is known to have said, and how to find out which options
    // governed then. A store that knows less has lost it, and is told (mirror/told.hpp).
    void remember(const detail::view& fleet, std::function<told_options()> options);
    // Something else can decide and count: a question ends after `limit`, and as soon as the store
    // says why it will not answer; settling tries once.
    void be_brief(milliseconds limit) noexcept;

    // Once. `longest`: the call lasts no longer; nothing: nobody knows.
    [[nodiscard]] admission ask(std::optional<milliseconds> longest);

    // Once; later ones do nothing. Also after a refusal, which is counted then. The error is the
    // store's: the outcome is perhaps not counted.
    std::error_code settle(outcome what, milliseconds took);
    [[nodiscard]] bool is_settled() const noexcept { return settled_; }

    // As last heard, and with what remains of it now.
    [[nodiscard]] const detail::view& fleet() const noexcept { return fleet_; }
    [[nodiscard]] detail::view fleet_now() const;
    [[nodiscard]] admission::kind_t admitted_as() const noexcept { return kind_; }
    // The governing options and their stamp; no text: the record has none, or they were not asked
    // for.
    [[nodiscard]] told_options governing() const { return {governing_, governing_stamp_}; }
    // The text of the options that another process had stamped, and that this call has replaced by
    // its own; empty: it has not.
    [[nodiscard]] std::string replaced_options() const;
    [[nodiscard]] const counts& window() const noexcept { return window_; }
    [[nodiscard]] const detail::policy& rules() const noexcept { return rules_; }
    // A probe that was settled after its lease had run out, and therefore has failed.
    [[nodiscard]] bool was_late() const noexcept { return late_; }

private:
    [[nodiscard]] std::error_code read();
    template <class T, class Request>
    [[nodiscard]] answer<T> question(Request request) const;
    [[nodiscard]] std::error_code bring_back(const detail::view& now);
    [[nodiscard]] std::error_code learn_options();
    void note_options();
    [[nodiscard]] admission decide_call(std::optional<milliseconds> longest);
    [[nodiscard]] std::optional<admission> take_probe(std::optional<milliseconds> longest);
    [[nodiscard]] std::error_code settle_probe(outcome what);
    [[nodiscard]] std::error_code tell_options();
    [[nodiscard]] std::error_code book(const counts& n, bool is_stale);
    [[nodiscard]] std::error_code exchange(const detail::news& n, detail::verdict& v);
    void learn(const detail::verdict& v);
    [[nodiscard]] bool is_crossed(const detail::verdict& v) const;
    [[nodiscard]] std::string own_options() const;

    const store& at_;
    std::string name_;
    breaker_options options_;
    bool configured_;
    admission::kind_t kind_ = admission::kind_t::unanswered;
    bool settled_ = false;
    bool late_ = false;
    std::uint64_t token_ = 0;  // of a probe
    detail::boot_clock::time_point lease_end_{};
    detail::view fleet_;                      // mine, as the contract has it
    detail::boot_clock::time_point heard_{};  // what remains in it counts from here
    detail::policy rules_;
    std::string governing_;  // its text; empty: the record has none, or it is not known
    std::uint64_t governing_stamp_ = 0;
    bool knows_nobodys_ = false;  // the record, what a process is configured with
    std::string before_;          // the text, before our own options were told
    detail::view told_;           // what the store is known to have said
    std::function<told_options()> told_options_;
    milliseconds limit_;  // of a question
    bool is_hurried_ = false;
    int attempts_ = 2;  // of settling, in times of store_timeout
    counts window_;
};

}  // namespace trinco::program
