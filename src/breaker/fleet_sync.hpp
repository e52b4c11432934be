// One instance's conversation with the store about all its breakers: batches of outcomes, views,
// probes, pacing, degradation and return. A state machine on an injected loop, so that the same
// code runs in the simulator.
//
// It never touches a window: a breaker hands its outcomes over as a harvest (fleet_port::collect)
// and is handed what the fleet decided (fleet_port::adopt).
//
// Exchange    At most one in flight per instance, of at most max_news elements, urgent breakers
//             first. A batch is immutable once sent: it keeps its seq and is sent again unchanged
//             until it is answered, for at most one window; then its counts are dropped and said
//             so (store_report::dropped). What is collected meanwhile waits for the next batch.
//             Strict reads and probes travel beside exchanges and count nothing.
// When        Every sync_interval while there is news, at a random phase, stretched by the
//             verdict's next_exchange; doubled, up to 2 s, while round trips exceed five times
//             their median. Urgent: at once, but at least 2 ms after the last exchange, when a
//             breaker has counted fleet_port::terms::urgent_after bad outcomes since its harvest,
//             or the store asks for a flush. Otherwise never, but each breaker is exchanged every
//             live_for / 3 (its views compared, its instance heard), and at once, with up to 100
//             ms of jitter, after a gap or a new server.
// Flush       What there is goes at once. Whoever was asked comes once more, 20 ms and a random
//             share of its pace later, unless the view changed meanwhile: a store decides only in
//             an exchange, and a fleet whose calls all hang has no other reason to send one.
// Probes      One ask per breaker may be in flight; others are refused with the cached
//             retry_after of the last refusal (at least 10 ms), which a new era or another
//             override forgets. While the store is late (no answer to anything within
//             store_timeout) nobody waits: asks are refused at once. A granted probe is settled
//             as a failure at its deadline by the instance itself; settlements are repeated until
//             they are answered or the store has reclaimed the lease. An ask without an answer,
//             or whose asker has gone, is given back. After new_server no probe is asked for
//             during probe_timeout: leases from before may be unknown to the new server.
// Degraded    No answer to anything for degraded_after, or none to what writes (exchanges and
//             probes; a full server or a replica still answers looks), or nothing but `denied`:
//             each breaker is told once (store_lost) and goes on with its local breaker;
//             exchanges go on being tried at the tick, at most once a degraded_after and after a
//             new connection (new_server, or a gap with none for a degraded_after before it), and
//             nothing new is collected for them, so that nothing gets dropped. The first answer
//             about a breaker ends it (store_back), after the views were compared. A process that
//             slept does not count its sleep as silence of the store.
// Strict      A read is one look of the store. An exchange without counts follows where the look
//             says so, or takes its place where it is known to be needed: until this process's
//             options are stamped, while degraded, after a gap, and in an era of which no verdict
//             has come (only verdicts and answers to probes tell who was set aside).
// Options     The process's own options travel until they are stamped; the governing ones are
//             learnt from verdicts and handed to the breaker (terms).
// Identity    One instance name per life of a process: sequence numbers begin anew with each.
//
// Threads     The loop's thread for everything but wake() and probe_wait(), which any thread may
//             call. Completions run there too, never inside the call that was made. Ports and
//             completions may call anything from inside, but must not destroy the fleet_sync
//             there.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/breaker/messages.hpp"
#include "core/breaker/policy.hpp"
#include "core/loop.hpp"
#include "store/breaker_store.hpp"
#include "trinco/breaker_options.hpp"
#include "trinco/store_report.hpp"

namespace trinco::detail {

// What fleet_sync asks of one breaker. All calls come on the loop's thread.
class fleet_port {
public:
    virtual ~fleet_port() = default;

    // The outcomes since the last collect: those of the given era by slice (oldest first, at most
    // max_slices), all others as stale.
    struct harvest {
        std::vector<slice> slices;
        counts stale;
        [[nodiscard]] bool empty() const noexcept { return slices.empty() && stale.empty(); }
    };
    [[nodiscard]] virtual harvest collect(era_t era) = 0;
    // Whether collect would return anything; cheap.
    [[nodiscard]] virtual bool has_news() const = 0;

    // What the fleet says now.
    struct terms {
        view fleet;
        boot_clock::time_point as_of;  // remaining times of the view count from here
        policy rules;                  // the governing options
        bool set_aside = false;
        std::uint32_t live = 0;
        counts window;  // the fleet's, as last heard in the view's era
        // Unsent bad outcomes (failures and slow calls) after which to call wake(true): they would
        // bring the fleet's window within 20 % of a threshold. At least 1.
        std::uint64_t urgent_after = 1;
    };
    // Called after every verdict, and when a notice or a probe's answer brings something newer.
    virtual void adopt(const terms& t) = 0;
    // That comes soon, and this is what it will say of calls: refuse them from now on, at the least
    // cost, and say whether that is done. Whatever adopt() says next that is newer ends it.
    virtual bool open_ahead(const opening&) { return false; }

    // The store does not answer: go on alone. live: voters heard of last (0: never).
    // Why in one sentence, where it is known.
    virtual void store_lost(std::uint32_t live, std::string_view why) = 0;
    // It answers again, and adopt() has said what the fleet thinks.
    virtual void store_back() = 0;
};

// The answer to one ask for a probe.
struct probe_answer {
    bool granted = false;
    std::uint64_t token = 0;           // granted: names the lease in settle_probe
    era_t era = 0;                     // granted: of the lease, and of the view adopted before
    boot_clock::time_point expires{};  // granted: from here on it has failed, whatever is settled
    std::chrono::milliseconds retry_after{0};  // refused: no ask before
};

class fleet_sync {
    struct impl;
    struct member;

public:
    // loop and store must outlive it. Subscribes at once.
    fleet_sync(loop& on, breaker_store& store, breaker_identity who);
    // Cancels everything: no completion and no callback runs afterwards. Memberships may outlive it
    // and then do nothing. What was not sent is lost; stop() first to send it.
    ~fleet_sync();
    fleet_sync(const fleet_sync&) = delete;
    fleet_sync& operator=(const fleet_sync&) = delete;

    // One breaker's part in it. Destroying it ends it: no callback to the port runs from then on,
    // not even a completion; leases it holds are given back; outcomes not yet collected are lost.
    class membership {
    public:
        ~membership();
        membership(const membership&) = delete;
        membership& operator=(const membership&) = delete;

        // true: there are unsent outcomes that should not wait. false: exchange at the next tick,
        // even without outcomes. Any thread; one atomic operation while one like it is under way.
        void wake(bool urgent) noexcept;
        // For how long an ask would be refused without asking the store; 0: it would be asked. Any
        // thread; one atomic load. The loop's clock says `now`.
        [[nodiscard]] std::chrono::milliseconds probe_wait(
            boot_clock::time_point now) const noexcept;

        // Asks for one probe, for at most store_timeout. The completion has no error: without an
        // answer the probe is refused. Destroying the op gives a granted probe back.
        [[nodiscard]] op ask_probe(completion<probe_answer> done);
        // Settles a granted probe: success, failure or give_back. False: it is not held (any more):
        // settled before, or overdue and thereby failed.
        bool settle_probe(std::uint64_t token, probe_step how);

        // Strict mode: one read of the store that begins after this call; adopt() runs before the
        // completion. Calls made while one is under way share the next. An error means that the
        // store did not answer within store_timeout, or not about this breaker.
        [[nodiscard]] op refresh(completion<int> done);

        // What adopt() was last told; the default before the first answer.
        [[nodiscard]] const fleet_port::terms& terms() const noexcept;
        [[nodiscard]] bool degraded() const noexcept;

    private:
        friend class fleet_sync;
        explicit membership(std::shared_ptr<member> m) noexcept : m_(std::move(m)) {}
        std::shared_ptr<member> m_;
    };

    // name follows core/names.hpp and is joined at most once at a time; options are valid; the port
    // outlives the membership. The first exchange follows within a sync_interval.
    [[nodiscard]] std::unique_ptr<membership> join(std::string name, const breaker_options& options,
                                                   fleet_port& port);

    // An operator's hand. An id of 0 is drawn, an empty `who` is this instance. Repeated under the
    // same id until it is answered or `by`; the view after it is adopted here at once.
    [[nodiscard]] op control(control_request request, deadline by, completion<view> done);

    // Sends what all breakers have, once, and completes when it is answered, or at `by` with
    // unknown_outcome. Asks for probes are refused from now on.
    [[nodiscard]] op stop(deadline by, completion<int> done);

    // What the breaker of that name was last told; null when it has not joined.
    [[nodiscard]] const fleet_port::terms* terms_of(std::string_view name) const;
    // What it has done and met so far; `now` of the loop's clock. Any thread.
    [[nodiscard]] store_report report(boot_clock::time_point now) const;

private:
    std::shared_ptr<impl> impl_;
};

}  // namespace trinco::detail
