#include "lock/session_core.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/mutant.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr backoff open_waits{.first = 50ms, .longest = 1'000ms};
constexpr backoff leave_waits{.first = 100ms, .longest = 2'000ms};

// Not busy: a full disk, or a bound that is reached, does not pass within the time for opening.
bool may_pass(const std::error_code& error) {
    return error == errc::unavailable || error == errc::unknown_outcome;
}

}  // namespace

void lease_view::set(const lease_machine& m) {
    const std::lock_guard hold(mutex_);
    machine_ = m;
}

lease_state lease_view::state(clocks now) const {
    const std::lock_guard hold(mutex_);
    return machine_ ? machine_->state(now) : lease_state::lost;
}

boot_clock::duration lease_view::valid_for(clocks now) const {
    const std::lock_guard hold(mutex_);
    return machine_ ? machine_->valid_for(now) : boot_clock::duration{};
}

session_core::session_core(loop& on, lock_store& store, session_settings settings,
                           std::shared_ptr<void> keep)
    : keep_(std::move(keep)), on_(on), store_(store), settings_(std::move(settings)) {}

session_core::~session_core() = default;

void session_core::expect(std::vector<part> parts, std::string info, bool only_if_free, bool bare) {
    claim first;
    first.id = {next_claim_};
    first.parts = std::move(parts);
    first.info = std::move(info);
    first.only_if_free = only_if_free;
    first.bare = bare;
    store_.expect(first);
}

void session_core::open(deadline by, told done) {
    try_open(by, 0, std::move(done));
}

void session_core::try_open(deadline by, std::uint32_t attempt, told done) {
    const auto sent = now();
    const auto until = std::min(by, sent.boot + settings_.request_timeout);
    request_ = store_.open(
        settings_.ttl, settings_.label, until,
        [this, sent, by, attempt, done = std::move(done)](std::error_code error,
                                                          lease got) mutable {
            if (!error) {
                lease_ = got.id;
                machine_.emplace(sent, now(), got.ttl);
                const auto alive = std::weak_ptr<session_core*>(self_);
                step();
                done(alive.expired() ? make_error_code(errc::lost) : ended_);
                return;
            }
            const auto again = now().boot + open_waits.wait(attempt, on_.random());
            if (!may_pass(error) || again >= by) {
                ended_ = error;
                done(error);
                return;
            }
            request_ = on_.at(again, [this, by, attempt, done = std::move(done)]() mutable {
                try_open(by, attempt + 1, std::move(done));
            });
        });
}

deadline session_core::request_by() const {
    const auto by = now().boot + settings_.request_timeout;
    return machine_ ? std::min(by, machine_->deadline_at()) : by;
}

lease_state session_core::observe() {
    if (!open_now()) return lease_state::lost;
    const auto state = machine_->observe(now());
    view_->set(*machine_);
    if (state == lease_state::lost) {
        end(errc::lost, now().boot + settings_.request_timeout);
    } else if (state == lease_state::uncertain) {
        arm();  // clocks that moved make a renewal due at once
    }
    return state;
}

void session_core::lease_gone() {
    if (open_now()) end(errc::lost, now().boot + settings_.request_timeout);
}

// Looks at the time, does what is due, and comes back when there is something to do again.
void session_core::step() {
    if (observe() == lease_state::lost) return;
    const auto at = now();
    if (machine_->renewal_due(at)) send_renewal(at);
    arm();
}

void session_core::arm() {
    timer_ = on_.at(machine_->next_wake(now()), [this] { step(); });
}

void session_core::send_renewal(clocks at) {
    const auto by = machine_->renewal_sent(at);
    const auto n = next_renewal_++;
    renewals_[n] =
        store_.renew(lease_, by, [this, n, at](std::error_code error, std::chrono::seconds ttl) {
            // Unanswered and refused attempts need no care: others follow until the deadline.
            const auto self = std::move(renewals_[n]);
            renewals_.erase(n);
            if (error == errc::lost) {
                lease_gone();
            } else if (!error) {
                renewed(at, ttl);
            }
        });
}

void session_core::renewed(clocks sent, std::chrono::seconds ttl) {
    if (!open_now()) return;
    machine_->renewed(sent, now(), ttl);
    const auto alive = std::weak_ptr<session_core*>(self_);
    step();
    if (alive.expired() || !open_now()) return;
    read_account();
    tell_renewed();
}

void session_core::tell_renewed() {
    const auto alive = std::weak_ptr<session_core*>(self_);
    std::vector<claim_id> held;
    for (const auto& [id, a] : accounts_) {
        if (a.holder != nullptr) held.push_back(id);
    }
    for (const auto id : held) {
        const auto at = accounts_.find(id);
        if (at != accounts_.end() && at->second.holder != nullptr) at->second.holder->on_renewed();
        if (alive.expired()) return;
    }
}

claim_id session_core::adopt(claim_holder& holder, std::vector<std::string> names) {
    const claim_id id{next_claim_++};
    auto& a = accounts_[id];
    a.holder = &holder;
    a.names = std::move(names);
    a.changed = readings_;
    pace();
    return id;
}

void session_core::change(account& a, claim_event e) {
    const auto waits = [&a] { return a.life.state() == claim_state::waiting; };
    if (waits()) --waiting_;
    a.life.on(e);
    if (waits()) ++waiting_;
    a.changed = readings_;
    pace();
}

// Renews at the pace of what it is for.
void session_core::pace() {
    const bool waits = waiting_ > 0 && waiting_ == accounts_.size();
    const auto use = waits ? lease_use::waiting : lease_use::holding;
    if (!open_now() || std::exchange(use_, use) == use) return;
    machine_->use(use);
    arm();
}

void session_core::note(claim_id id, claim_event e) {
    const auto at = accounts_.find(id);
    if (at == accounts_.end()) return;
    change(at->second, e);
    const auto state = at->second.life.state();
    if (state == claim_state::gone) {
        erase(at);
    } else if (state == claim_state::debt) {
        disown(at);
    }
}

void session_core::disown(account_map::iterator at) {
    at->second.holder = nullptr;
    unwanted_.insert(at->first);
}

void session_core::erase(account_map::iterator at) {
    unwanted_.erase(at->first);
    if (at->second.life.state() == claim_state::waiting) --waiting_;
    accounts_.erase(at);
    pace();
}

void session_core::abandon(claim_id id, told done) {
    const auto at = accounts_.find(id);
    if (at == accounts_.end()) {
        // Its holder may not be told any more; the claim goes with the lease.
        if (ending_ && ending_->contains(id)) ending_->at(id).holder = nullptr;
        if (done) on_.post([done = std::move(done)]() mutable { done({}); });
        return;
    }
    auto& a = at->second;
    disown(at);
    change(a, claim_event::abandoned);
    if (done) a.waiting.push_back(std::move(done));
    send_leave(id);
}

void session_core::send_leave(claim_id id) {
    auto& a = accounts_.at(id);
    if (a.asking) return;
    a.asking = true;
    a.retry.cancel();
    a.leave = store_.leave(lease_, id, request_by(),
                           [this, id](std::error_code error, int) { leave_answered(id, error); });
}

void session_core::leave_answered(claim_id id, std::error_code error) {
    const auto at = accounts_.find(id);
    if (at == accounts_.end()) return;
    auto& a = at->second;
    a.asking = false;
    const auto finished = std::move(a.leave);
    auto waiting = std::exchange(a.waiting, {});
    change(a, error ? claim_event::unsettled : claim_event::left);
    if (a.life.state() == claim_state::gone) {
        erase(at);
    } else if (error) {
        const auto wait = leave_waits.wait(a.attempts++, on_.random());
        a.retry = on_.after(wait, [this, id] { send_leave(id); });
    }
    for (auto& f : waiting) f(error);
}

// Shared by the answers it waits for.
struct session_core::settling {
    unique_function<void()> done;
    explicit settling(unique_function<void()> f) : done(std::move(f)) {}
    settling(const settling&) = delete;
    settling& operator=(const settling&) = delete;
    ~settling() { done(); }
};

void session_core::settle(const std::vector<std::string>& names, unique_function<void()> done) {
    const auto all = std::make_shared<settling>(std::move(done));
    on_.post([all] {});  // never inside the call
    for (const auto id : unwanted_) {
        auto& a = accounts_.at(id);
        const bool named = std::any_of(a.names.begin(), a.names.end(), [&](const auto& n) {
            return std::find(names.begin(), names.end(), n) != names.end();
        });
        if (!named) continue;
        a.waiting.push_back([all](std::error_code) {});
        a.asking = false;  // one under way may be lost already: ask anew
        send_leave(id);
    }
}

void session_core::read_account() {
    if (reading_) return;
    reading_ = true;
    const auto asked = ++readings_;
    listing_ = store_.owned(lease_, request_by(),
                            [this, asked](std::error_code error, std::vector<claim_id> listed) {
                                reading_ = false;
                                if (error == errc::lost) lease_gone();
                                if (!error) reconcile(asked, std::move(listed));
                            });
}

void session_core::reconcile(std::uint64_t asked, std::vector<claim_id> listed) {
    std::sort(listed.begin(), listed.end());
    if (!TRINCO_MUTANT("lock_debts_ignored")) {
        for (const auto id : listed) {
            auto [at, unknown] = accounts_.try_emplace(id);
            auto& a = at->second;
            if (a.holder != nullptr) continue;
            disown(at);
            change(a, unknown ? claim_event::abandoned : claim_event::listed);
            next_claim_ = std::max(next_claim_, id.n + 1);
            send_leave(id);
        }
    }
    reconcile_unlisted(asked, listed);
}

// Only what had not changed since the question was asked is judged by the answer.
void session_core::reconcile_unlisted(std::uint64_t asked, const std::vector<claim_id>& listed) {
    std::vector<claim_id> missing;
    for (auto& [id, a] : accounts_) {
        if (a.changed >= asked || a.asking ||
            std::binary_search(listed.begin(), listed.end(), id)) {
            continue;
        }
        missing.push_back(id);
    }
    const auto alive = std::weak_ptr<session_core*>(self_);
    for (const auto id : missing) {
        const auto at = accounts_.find(id);
        if (at == accounts_.end()) continue;
        auto* holder = at->second.holder;
        const auto state = at->second.life.state();
        if (holder == nullptr) {
            note(id, claim_event::unlisted);
        } else if (state == claim_state::waiting || state == claim_state::granted) {
            note(id, claim_event::lost);
            holder->on_missing();
            if (alive.expired()) return;
        }
    }
}

void session_core::end(std::error_code why, deadline revoke_by) {
    ended_ = why;
    machine_->end();
    view_->set(*machine_);
    timer_.cancel();
    listing_.cancel();
    renewals_.clear();
    ending_ = std::make_shared<account_map>(std::exchange(accounts_, {}));
    unwanted_.clear();
    waiting_ = 0;
    // What still hangs on the lease goes with it; when this is lost, the lease ends by itself.
    revoking_ = true;
    request_ = store_.revoke(lease_, revoke_by, [this](std::error_code error, ended_claims claims) {
        revoking_ = false;
        for (auto& f : std::exchange(closed_, {})) f(error, claims);
    });
    const auto alive = std::weak_ptr<session_core*>(self_);
    tell_end(why);
    if (alive.expired()) return;
    if (auto f = std::exchange(when_lost_, nullptr)) f(why);
}

// Each holder may destroy others in it, and the session.
void session_core::tell_end(std::error_code why) {
    const auto alive = std::weak_ptr<session_core*>(self_);
    const auto ending = ending_;
    for (auto& [id, a] : *ending) {
        if (auto* const holder = std::exchange(a.holder, nullptr)) holder->on_session_lost(why);
        for (auto& f : a.waiting) f(why);
    }
    if (!alive.expired()) ending_.reset();
}

void session_core::close(deadline by, completion<ended_claims> done) {
    if (open_now() || revoking_) {
        closed_.push_back(std::move(done));
        if (open_now()) end(errc::shut_down, by);
        return;
    }
    if (!ended_) ended_ = errc::shut_down;  // an opening under way is given up
    request_.cancel();
    // What was lost took its claims along.
    const auto left = ended_ == errc::lost ? ended_claims(0) : std::nullopt;
    on_.post([done = std::move(done), left]() mutable { done({}, left); });
}

}  // namespace trinco::detail
