#include "lock/lock_claim.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/mutant.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr backoff enter_waits{.first = 50ms, .longest = 1'000ms};
constexpr auto stepped_back_min = 50ms;
constexpr auto stepped_back_max = 500ms;

}  // namespace

lock_claim::lock_claim(std::shared_ptr<session_core> session) : session_(std::move(session)) {}

lock_claim::~lock_claim() {
    abandon();
}

bool lock_claim::held() const {
    return phase_ == phase::granted &&
           session_->view()->state(session_->now()) != lease_state::lost;
}

void lock_claim::acquire(lock_request what, completion<grant> done) {
    if (phase_ != phase::idle) {
        session_->on().post([done = std::move(done)]() mutable { done(errc::would_deadlock, {}); });
        return;
    }
    what_ = std::move(what);
    done_ = std::move(done);
    attempt_ = std::make_shared<int>(0);
    attempts_ = 0;
    trouble_.clear();
    if (what_.by) {
        limit_ = session_->on().at(*what_.by, [this] {
            // A short wait may end before the store can answer, and that is no fault of the store;
            // a try that has no answer does not know that the lock is taken.
            const bool unanswered = what_.only_if_free && phase_ != phase::waiting;
            fail(trouble_ || unanswered ? errc::unavailable : errc::not_acquired);
        });
    }
    settle();
}

void lock_claim::settle() {
    phase_ = phase::settling;
    const auto here = std::weak_ptr<int>(attempt_);
    // A turn less where nothing is to be settled; what may fail is told in a turn of its own.
    const bool ready = session_->debts() == 0 && session_->observe() == lease_state::held;
    if (here.expired()) return;  // the session's end was told, and whoever heard it gave this up
    if (ready) return enter();
    std::vector<std::string> names;
    for (const auto& p : what_.parts) names.push_back(p.name);
    session_->settle(names, [this, here] {
        if (!here.expired()) enter();
    });
}

void lock_claim::enter() {
    const auto here = std::weak_ptr<int>(attempt_);
    const bool lost = session_->observe() == lease_state::lost;
    if (here.expired()) return;  // as in settle
    if (lost) {
        fail(session_->ended() ? session_->ended() : make_error_code(errc::lost));
        return;
    }
    phase_ = phase::entering;
    std::vector<std::string> names;
    for (const auto& p : what_.parts) names.push_back(p.name);
    id_ = session_->adopt(*this, std::move(names));
    send_enter();
}

void lock_claim::send_enter() {
    claim c;
    c.id = id_;
    c.lease = session_->lease_id();
    c.parts = what_.parts;
    c.info = what_.info;
    c.only_if_free = what_.only_if_free;
    c.bare = what_.bare;
    request_ = session_->store().enter(
        std::move(c), session_->request_by(),
        [this](std::error_code error, place at) { enter_answered(error, std::move(at)); });
}

void lock_claim::enter_answered(std::error_code error, place at) {
    trouble_.clear();
    if (!error) {
        session_->note(id_, claim_event::entered);
        if (at.granted) {
            confirmed(std::move(*at.granted));
        } else {
            wait();
        }
        return;
    }
    if (error == errc::lost) {
        session_->lease_gone();  // tells this, too
        return;
    }
    const bool passing = error == errc::unavailable || error == errc::busy;
    const bool unknown = kind_of(error) == error_kind::unknown;
    if (unknown) session_->note(id_, claim_event::unsettled);
    if (unknown || (passing && !what_.only_if_free)) {
        trouble_ = error;
        retry_ = session_->on().after(enter_waits.wait(attempts_++, session_->on().random()),
                                      [this] { send_enter(); });
        return;
    }
    session_->note(id_, claim_event::refused);
    id_ = {};
    fail(error);
}

void lock_claim::wait() {
    phase_ = phase::waiting;
    request_ = session_->store().await(session_->lease_id(), id_, nullptr,
                                       [this](std::error_code error, grant g) {
                                           if (error) {
                                               gone(error);
                                           } else {
                                               confirmed(std::move(g));
                                           }
                                       });
    if (what_.parts.size() > 1) {
        retry_ = session_->on().after(patience_with_some, [this] { look_at_turns(); });
    }
}

void lock_claim::look_at_turns() {
    if (phase_ != phase::waiting) return;
    turns_ = session_->store().turns(
        session_->lease_id(), id_, session_->request_by(),
        [this](std::error_code error, const std::vector<bool>& turns) {
            if (phase_ != phase::waiting) return;
            const auto heads = std::count(turns.begin(), turns.end(), true);
            const bool some = !error && heads > 0 && static_cast<std::size_t>(heads) < turns.size();
            if (some && !TRINCO_MUTANT("lock_all_keeps_what_it_heads")) return step_back();
            retry_ = session_->on().after(patience_with_some, [this] { look_at_turns(); });
        });
}

void lock_claim::step_back() {
    phase_ = phase::stepped_back;
    request_.cancel();
    session_->abandon(std::exchange(id_, {}), nullptr);
    const boot_clock::duration range = stepped_back_max - stepped_back_min;
    const auto more = boot_clock::duration(static_cast<std::int64_t>(
        session_->on().random() % static_cast<std::uint64_t>(range.count())));
    retry_ = session_->on().after(stepped_back_min + more, [this] { settle(); });
}

void lock_claim::confirmed(grant g) {
    if (TRINCO_MUTANT("lock_granted_without_confirmation")) {
        succeed(std::move(g));
        return;
    }
    const auto here = std::weak_ptr<int>(attempt_);
    const auto state = session_->observe();
    if (here.expired() || state == lease_state::lost) return;  // told as the session's holder
    if (state == lease_state::held) {
        succeed(std::move(g));
    } else {
        phase_ = phase::put_by;
    }
}

void lock_claim::on_renewed() {
    if (phase_ != phase::put_by) return;
    request_ = session_->store().verify(session_->lease_id(), id_, session_->request_by(),
                                        [this](std::error_code error, grant g) {
                                            if (!error) {
                                                confirmed(std::move(g));
                                            } else if (kind_of(error) == error_kind::gone) {
                                                gone(error);
                                            }
                                            // Otherwise the next renewal asks again.
                                        });
}

void lock_claim::succeed(grant g) {
    session_->note(id_, claim_event::granted);
    limit_.cancel();
    retry_.cancel();
    turns_.cancel();
    phase_ = phase::granted;
    granted_ = std::move(g);
    const auto here = std::weak_ptr<int>(attempt_);
    auto done = std::exchange(done_, nullptr);
    done({}, granted_);
    if (here.expired()) return;  // given back in it, or destroyed
    watch_ = session_->store().on_gone(session_->lease_id(), id_, [this](std::error_code why) {
        if (why == errc::evicted) {
            tell_loss(why);
        } else {
            gone(why);
        }
    });
}

// The claim itself is no more, while the session may live on.
void lock_claim::gone(std::error_code why) {
    session_->note(id_, claim_event::lost);
    on_session_lost(why);
}

void lock_claim::on_session_lost(std::error_code why) {
    id_ = {};
    if (phase_ != phase::granted) {
        fail(why);
        return;
    }
    phase_ = phase::idle;
    forget_requests();
    tell_loss(why);
}

void lock_claim::tell_loss(std::error_code why) const {
    if (const auto f = when_lost_) (*f)(why);  // which may destroy this
}

void lock_claim::on_missing() {
    on_session_lost(errc::lost);
}

void lock_claim::fail(std::error_code why) {
    auto done = std::exchange(done_, nullptr);
    abandon();
    if (done) done(why, {});
}

void lock_claim::forget_requests() {
    attempt_.reset();
    limit_.cancel();
    retry_.cancel();
    turns_.cancel();
    end_publishing(errc::not_held);
    request_.cancel();
    watch_.cancel();
}

void lock_claim::abandon() {
    done_.reset();
    if (phase_ == phase::idle) return;
    const bool entered = phase_ != phase::settling && id_.n != 0;
    phase_ = phase::idle;
    forget_requests();
    if (entered) session_->abandon(std::exchange(id_, {}), nullptr);
}

void lock_claim::publish(std::string info, told done) {
    if (phase_ != phase::granted) {
        session_->on().post([done = std::move(done)]() mutable { done(errc::not_held); });
        return;
    }
    end_publishing(errc::unknown_outcome);
    what_.info = std::move(info);
    publishing_told_ = std::make_shared<told>(std::move(done));
    publishing_ =
        session_->store().publish(session_->lease_id(), id_, what_.info, session_->request_by(),
                                  [answer = publishing_told_](std::error_code error, int) {
                                      if (auto f = std::exchange(*answer, nullptr)) f(error);
                                  });
}

// Of one that is overtaken by another, or by the end of the lock; told in a later turn.
void lock_claim::end_publishing(std::error_code why) {
    publishing_.cancel();
    const auto answer = std::exchange(publishing_told_, nullptr);
    if (!answer || !*answer) return;
    session_->on().post([answer, why] {
        if (auto f = std::exchange(*answer, nullptr)) f(why);
    });
}

void lock_claim::write(const std::vector<change>& changes, std::chrono::seconds keep,
                       completion<std::uint64_t> done) {
    if (phase_ != phase::granted) {
        session_->on().post([done = std::move(done)]() mutable { done(errc::not_held, 0); });
        return;
    }
    const auto n = next_write_++;
    writes_[n] = session_->store().write(
        session_->lease_id(), id_, changes, keep, session_->request_by(),
        [this, n, of = id_, answer = std::move(done)](std::error_code error,
                                                      std::uint64_t revision) mutable {
            auto f = std::move(answer);
            const auto self = std::move(writes_[n]);  // this function may live in it
            writes_.erase(n);
            // It may destroy this; who is told below finds that it is held no more.
            if (error == errc::lost && phase_ == phase::granted && id_ == of) gone(error);
            f(error, revision);
        });
}

void lock_claim::release(told done) {
    if (phase_ != phase::granted) {
        session_->on().post([done = std::move(done)]() mutable { done(errc::not_held); });
        return;
    }
    phase_ = phase::idle;
    forget_requests();
    session_->abandon(std::exchange(id_, {}), std::move(done));
}

}  // namespace trinco::detail
