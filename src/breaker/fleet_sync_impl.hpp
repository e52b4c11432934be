// The inside of fleet_sync: its state, shared by the files fleet_sync*.cpp, each of which holds one
// concern: fleet_sync.cpp (life and interface), _exchange (when and what to send), _views (what is
// learnt), _probes, _reads (refresh, control).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "breaker/fleet_sync.hpp"
#include "breaker/fleet_sync_pace.hpp"
#include "breaker/sync_meter.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

using time_point = boot_clock::time_point;
inline constexpr time_point never = time_point::max();

// One breaker of this instance. It ends (owner and port become null) with its membership or with
// the fleet_sync, whichever goes first; callbacks under way hold it by shared_ptr and look at
// `owner`.
struct fleet_sync::member : std::enable_shared_from_this<member> {
    // What an opening is asked for comes first, see engine.hpp.
    impl* owner = nullptr;
    fleet_port* port = nullptr;
    bool degraded = false;

    // What is known.
    fleet_port::terms known;
    time_point until{};       // absolute: known.fleet.remaining
    time_point over_until{};  // absolute: known.fleet.over_remaining

    std::string name;
    breaker_options options;
    std::string own_text;  // the options
    std::uint64_t own_stamp = 0;
    std::string governing_text;
    std::uint64_t governing_stamp = 0;  // of governing_text, which a view may be ahead of
    bool store_lacks_options = false;
    std::optional<era_t> verdict_era;  // the era of the last verdict

    // Exchanges.
    struct batch {
        news sent;
        time_point first_sent;
    };
    std::optional<batch> unanswered;
    time_point due{};              // the next tick at which to look for news
    time_point forced = never;     // to be exchanged then, even without news
    time_point follow_up = never;  // after a flush
    time_point flushed{};          // when the store last asked for a flush
    time_point urgent = never;     // since when it has news that should not wait
    bool in_flight = false;
    bool news_found = false;       // and not collected yet: there is no need to ask again
    bool parted = false;           // had nothing to send any more when everything was to stop
    boot_clock::duration pace{0};  // next_exchange of the last verdict
    std::optional<time_point> refused_since;  // the store answers, but not about this breaker
    std::error_code refusal;                  // what it answered instead, last

    // Probes.
    struct asking {
        asking() {}  // clang: the initialisers of a nested class are not known inside the outer one
        std::uint64_t token = 0;
        time_point sent;
        std::shared_ptr<completion<probe_answer>> done;  // emptied when the asker goes
        op request;
    };
    std::optional<asking> ask;
    std::vector<std::uint64_t> held;  // tokens of its probes
    time_point refused_until{};       // by the last refusal
    // Leases from before the server that was met then may be unknown to it.
    time_point met_server_at{};  // the clock's origin: long ago
    [[nodiscard]] time_point quarantined_until() const noexcept {
        return met_server_at == time_point{} ? time_point{}
                                             : met_server_at + known.rules.probe_timeout;
    }

    // Strict reads: those that share the read under way, and those that wait for the next.
    using reader = std::shared_ptr<completion<int>>;
    std::vector<reader> reading;
    std::vector<reader> read_next;
    op read;

    // Any thread.
    enum : std::uint8_t { woken_softly = 1, woken_urgently = 2 };
    std::atomic<std::uint8_t> woken{0};
    std::atomic<boot_clock::rep> gate{0};  // nanoseconds of the clock before which asks are refused
    loop* on = nullptr;

    [[nodiscard]] bool must_exchange() const noexcept;
    [[nodiscard]] bool has_news() {
        if (!news_found) news_found = port != nullptr && port->has_news();
        return news_found || unanswered.has_value();
    }
    // While everything stops. What comes after it had none is not sent any more.
    [[nodiscard]] bool has_last_news() {
        parted = parted || !has_news();
        return !parted || unanswered.has_value();
    }
    // By what was wanted first.
    [[nodiscard]] time_point waits_since() const noexcept {
        const auto asked_for = std::min(forced, follow_up);
        return degraded && !unanswered ? asked_for : std::min({asked_for, due, urgent});
    }
    // The view to send: what is left of times at `now`, and the stamp of the options really known.
    [[nodiscard]] view current_view(time_point now) const;
    // Recomputes `gate`.
    void shut_gate(time_point now) noexcept;
};

struct fleet_sync::impl : std::enable_shared_from_this<impl> {
    using member_ptr = std::shared_ptr<member>;

    impl(loop& on_loop, breaker_store& to, breaker_identity me);

    loop& on;
    breaker_store& store;
    breaker_identity who;
    std::map<std::string, member_ptr, std::less<>> members;
    std::uint64_t last_seq = 0;  // of all breakers together: growth per breaker is all that matters
    bool stopping = false;
    time_point met_server_at{};  // another one, last
    boot_clock::duration phase{0};
    op notices;

    // ---- exchanges (fleet_sync_exchange.cpp)
    struct item {
        member_ptr of;
        std::uint64_t seq = 0;
        std::uint64_t own_stamp = 0;
    };
    std::vector<item> items;  // of the exchange in flight
    op exchange;
    bool exchange_in_flight = false;
    time_point last_sent{};
    time_point planned = never;
    op timer;

    void plan();
    void plan(member& m);  // when nothing has changed but this one
    void plan_at(time_point next);
    [[nodiscard]] time_point next_time(member& m, time_point now);
    void send();
    [[nodiscard]] std::vector<member_ptr> candidates(time_point now);
    struct waiter;
    static void keep_longest(std::vector<waiter>& all, std::size_t most);
    [[nodiscard]] news compose(member& m, time_point now, item& as);
    void exchanged(time_point sent, deadline by, std::error_code ec, std::vector<verdict> verdicts);
    void settle_item(const item& it, time_point sent, const verdict& v);
    void drop_if_old(member& m, time_point now);
    [[nodiscard]] boot_clock::duration interval_of(const member& m) const noexcept;
    [[nodiscard]] boot_clock::duration store_timeout() const noexcept;
    void force(member& m, time_point when);
    void force_all(boot_clock::duration jitter);
    void end(member& m);

    struct stopper {
        deadline by;
        std::shared_ptr<completion<int>> done;
        op timer;
    };
    std::optional<stopper> stop_call;
    void finish_stop();

    // ---- what is learnt (fleet_sync_views.cpp)
    bool learn(member& m, const view& v, time_point as_of);
    void take_verdict(member& m, const verdict& v, time_point sent);
    void tell(member& m);
    void on_notice(const notice& n);
    [[nodiscard]] bool on_opening(const opening& o);

    // Silence of the store: since when, and whether asks should be refused because of it.
    std::optional<time_point> silent_since;
    time_point trouble_again{};  // when the next look sees whether there is any
    time_point last_answer{};
    bool late = false;
    bool writes_fail = false;  // the last write (exchange or probe) got no answer
    bool degraded = false;     // some breaker was told store_lost for silence
    time_point retry_at{};     // after a failure: no exchange before
    time_point last_gap{};
    op silence_timer;
    // A look only reads. Servers that take no writes (full, a replica) answer it all the same, so
    // that its answer does not end a silence of writes.
    enum class asked_to : std::uint8_t { read, write };
    void answered(asked_to what, time_point now);
    void unanswered(asked_to what, time_point sent, deadline by, std::error_code why);
    // One of these, by the error: the store may have answered, though not about this breaker.
    void failed(member* m, asked_to what, time_point sent, deadline by, std::error_code why);
    // Why the store does not serve as it should, in its words or in ours.
    std::error_code last_failure;  // since the last answer
    [[nodiscard]] std::string trouble() const;
    [[nodiscard]] static std::string refusal_of(const member& m);
    void watch_silence();
    void silence_goes_on(time_point since, time_point due);
    [[nodiscard]] boot_clock::duration knock_every() const noexcept;
    [[nodiscard]] boot_clock::duration shortest_interval() const noexcept;
    void lose(member& m, std::string_view why);
    void recover(member& m);

    // ---- probes (fleet_sync_probes.cpp)
    struct held_probe {
        std::weak_ptr<member> of;
        std::string name;
        view mine;                       // when the member is gone
        boot_clock::duration timeout{};  // of one request
        std::uint64_t token = 0;
        std::chrono::milliseconds lease{0};
        time_point expires;              // overdue from here
        time_point reclaimed;            // the store has dropped it by then
        std::optional<probe_step> step;  // being settled
        op timer;
        op request;
    };
    std::unordered_map<std::uint64_t, std::unique_ptr<held_probe>> probes;

    [[nodiscard]] op ask(const member_ptr& m, completion<probe_answer> done);
    [[nodiscard]] op refuse(const member_ptr& m, completion<probe_answer> done);
    void asked(const member_ptr& m, std::uint64_t token, deadline by, std::error_code ec,
               const probe_reply& reply);
    void hold(const member_ptr& m, std::uint64_t token, time_point sent);
    bool settle(std::uint64_t token, probe_step how);
    void forget_probe(std::uint64_t token);
    void send_settlement(held_probe& p);

    // ---- reads (fleet_sync_reads.cpp)
    [[nodiscard]] op refresh(const member_ptr& m, completion<int> done);
    void start_read(const member_ptr& m);
    void read_by_look(const member_ptr& m, deadline by);
    void looked(const member_ptr& m, time_point sent, deadline by, std::error_code ec,
                const glance& seen);
    void read_by_exchange(const member_ptr& m, deadline by);
    void finish_read(const member_ptr& m, std::error_code ec);
    struct control_call {
        control_request request;
        deadline by;
        std::shared_ptr<completion<view>> done;
        bool in_doubt = false;  // an attempt had no answer: it may have happened
        op attempt;
    };
    std::map<std::uint64_t, control_call> controls;
    [[nodiscard]] op control(control_request request, deadline by, completion<view> done);
    void try_control(std::uint64_t id);

    // ---- measurements
    round_trips trips;  // of exchanges: their pace follows it
    sync_meter meter;
};

}  // namespace trinco::detail
