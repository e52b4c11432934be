// Contending: a claim is attempted, then the one thing that is in its way is watched, then it is
// attempted again: a watch says when to try and nothing else, so that an answer that never comes
// only delays, until the look that is due anyway.
//
// Many who wait for one name are woken together. Who tried and was too late tries a random while
// later the next time, and the longer the more often that happened.
#include <algorithm>

#include "core/backoff.hpp"
#include "core/mutant.hpp"
#include "store/consul/consul_calls.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr backoff pauses{.first = 200ms, .longest = 2'000ms};  // while asking fails
constexpr backoff lost_races{.first = 10ms, .longest = 200ms};
constexpr boot_clock::duration first_patience = 1s;  // doubled with each failure
constexpr auto delayed_least = 250ms;
constexpr auto delayed_more = 500ms;

class contending : public conversation<contending, int> {
public:
    contending(std::string_view lease, claim_id id, std::optional<deadline> first)
        : lease_(lease), id_(id), first_(first) {}

    void start() {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr) return refuse(errc::lost);
        serial_ = c->serial;
        try_now();
    }

private:
    known_claim* mine() { return known().find(lease_, id_, serial_); }

    void stop_waiting() {
        watch_.cancel();
        timer_.cancel();
        look_.cancel();
    }
    void end(known_claim& c) {
        stop_waiting();
        c.contends = false;
        known().tell(lease_, id_);
        finish({}, 0);
    }

    void try_now() {
        stop_waiting();
        auto* c = mine();
        if (c == nullptr) return finish({}, 0);
        if (c->phase == claim_phase::leaving) return end(*c);
        if (!first_) {
            auto behind = known().in_line_behind(lease_, id_);
            if (!behind.empty()) {  // whoever it stands behind calls it again
                c->obstacle = std::move(behind);
                known().advance(lease_, c->parts);
                return end(*c);
            }
        }
        c->trying = true;
        const auto wait = first_patience * (1 << std::min(failures_, 2U));
        request_ = (c->counts() ? attempt_permit : attempt)(
            known_ptr(), lease_, id_, first_.value_or(known().on().now() + wait),
            then(&contending::tried));
    }

    void tried(std::error_code error, attempt_result r) {
        auto* c = mine();
        if (c == nullptr) return finish({}, 0);
        c->trying = false;
        if (error == errc::lost) return known().forget(lease_);
        if (!error && r.what == attempt_result::what_t::taken) return taken(*c, std::move(r));
        if (c->phase == claim_phase::leaving) return end(*c);
        const bool first = first_.has_value();
        first_.reset();
        if (first && error) return failed_at_first(*c, error);
        if (error) return later(*c, error);
        if (first && r.what == attempt_result::what_t::other_kind) {
            return give_up(r.refusal);
        }
        if (c->only_if_free) return give_up(errc::conflict);
        failures_ = 0;
        c->phase = claim_phase::waiting;
        c->obstacle = r.name;
        known().tell(lease_, id_);
        known().advance(lease_, c->parts);
        if (tries_because_free_) ++races_;
        tries_because_free_ = false;
        if (r.what == attempt_result::what_t::in_the_way) return wait_for(r.name);
        if (r.what == attempt_result::what_t::other_kind) return try_at(known().look_every(lease_));
        say_how_long(r.name);
        if (TRINCO_MUTANT("consul_delay_for_ever")) return;
        const boot_clock::duration more = delayed_more;
        try_at(delayed_least +
               boot_clock::duration(static_cast<std::int64_t>(
                   known().on().random() % static_cast<std::uint64_t>(more.count()))));
    }
    // Consul tells nobody how long a lock-delay still lasts: who saw the holder's session knows how
    // long it is, and when it began at the latest.
    void say_how_long(const std::string& name) {
        const auto until = gone_ + holder_delay_;
        if (known().on().now() >= until) return;  // it began anew, or nothing was seen of it
        const auto more = std::chrono::ceil<std::chrono::seconds>(until - known().on().now());
        known().say(errc::conflict, "'" + name + "' is free, but Consul keeps it back for " +
                                        std::to_string(more.count()) +
                                        " s more at most, for the lock-delay of the session that "
                                        "ended without giving it back");
    }
    void look_at_holder(const std::string& session) {
        if (session == holder_) return;
        holder_ = session;
        holder_delay_ = {};
        facts_ =
            link().facts(session, known().on().now() + patience, then(&contending::holder_read));
    }
    void holder_read(std::error_code error, std::optional<session_facts> of) {
        if (!error && of) holder_delay_ = of->lock_delay;
    }
    void taken(known_claim& c, attempt_result r) {
        if (c.phase != claim_phase::leaving) c.phase = claim_phase::granted;
        c.obstacle.clear();
        c.held = std::move(r.held);
        c.tokens = std::move(r.tokens);
        c.proven = r.sent;
        if (c.counts()) known().advance(lease_, c.parts);  // there may be more permits
        end(c);
    }
    void failed_at_first(known_claim& c, std::error_code error) {
        if (!c.may_arrive) return give_up(error);
        c.phase = claim_phase::unsure;
        c.trouble = error;
        end(c);
    }
    void give_up(std::error_code why) {
        known().forget(lease_, id_, why);  // this op goes with it
    }
    void later(known_claim& c, std::error_code error) {
        // It may have been taken: nobody behind it is to believe that something else is.
        c.obstacle.clear();
        known().advance(lease_, c.parts);
        const bool hopeless = error == errc::denied || error == errc::invalid;
        try_at(hopeless ? known().look_every(lease_)
                        : boot_clock::duration(pauses.wait(failures_, known().on().random())));
        ++failures_;
    }

    void try_at(boot_clock::duration wait) {
        timer_ = known().on().after(wait, then(&contending::try_now));
    }

    void wait_for(const std::string& name) {
        const auto* c = mine();
        permits_ = c->counts() ? c->parts.front().n : 0;
        const auto& prefix = known().settings().prefix;
        key_ = permits_ == 0 ? known().key_of(name) : semaphore_key(prefix, name);
        what_ = {key_, false, true};
        if (permits_ != 0) what_ = {contenders_under(prefix, name), true, true};
        is_free_ = false;
        look_when_due();
        watch_ = link().watch(
            {what_.key, what_.under, false},
            [weak = weak_from_this()](const read_reply& news) {
                const auto self = weak.lock();
                if (self && !self->over()) self->noticed(news.rows);
            },
            [](std::error_code) {});  // the looks that are due must do
    }
    void look_when_due() {
        timer_ = known().on().after(known().look_every(lease_), then(&contending::look));
    }
    void look() {
        if (TRINCO_MUTANT("consul_no_look")) return;
        look_ = link().read(what_, known().on().now() + patience, then(&contending::looked));
    }
    void looked(std::error_code error, read_reply reply) {
        if (is_free_) return;
        look_when_due();
        if (!error) noticed(reply.rows);
    }
    void noticed(const std::vector<key_value>& rows) {
        if (is_free_) return;
        if (is_taken(rows)) return;
        is_free_ = true;
        gone_ = known().on().now();
        tries_because_free_ = true;
        const auto wait = races_ == 0 ? 0ms : lost_races.wait(races_ - 1, known().on().random());
        try_at(wait);
    }

    [[nodiscard]] bool is_taken(const std::vector<key_value>& rows) {
        if (permits_ != 0) {
            const auto state = state_of(rows, key_);
            const auto* c = mine();
            // It may be this one's, by a request whose answer did not come.
            const bool own = c != nullptr && state.alive.contains(c->session);
            return !own && !state.has_news_for(permits_);
        }
        const auto row =
            std::find_if(rows.begin(), rows.end(), [&](auto& kv) { return kv.key == key_; });
        if (row == rows.end() || row->session.empty() || row->session == lease_) return false;
        look_at_holder(row->session);
        return true;
    }

    const std::string lease_;
    const claim_id id_;
    std::uint64_t serial_ = 0;
    std::optional<deadline> first_;
    std::uint32_t failures_ = 0;  // in a row
    std::uint32_t races_ = 0;     // that others won
    bool tries_because_free_ = false;
    bool is_free_ = false;       // and a try is due
    std::string key_;            // of what is in the way
    std::uint32_t permits_ = 0;  // of a semaphore
    read_request what_;          // shows whether it still is
    std::string holder_;         // the session that was seen last
    boot_clock::duration holder_delay_{};
    boot_clock::time_point gone_{};  // when that was seen first
    op watch_;
    op timer_;
    op look_;
    op facts_;
};

}  // namespace

void contend(const claims_ptr& known, std::string_view lease, claim_id id,
             std::optional<deadline> first) {
    auto* c = known->find(lease, id);
    if (c == nullptr || c->contends || known->link() == nullptr) return;
    c->contends = true;
    const auto serial = c->serial;
    auto begun = contending::begin(
        known, deadline::max(), [](std::error_code, int) {}, lease, id, first);
    // It may have gone in that call.
    if (auto* still = known->find(lease, id, serial)) still->contending = std::move(begun);
}

}  // namespace trinco::detail::consul
