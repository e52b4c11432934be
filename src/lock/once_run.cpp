#include "lock/once_run.hpp"

#include <array>
#include <utility>

#include "core/backoff.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr backoff waits{.first = 50ms, .longest = 1'000ms};

bool is_settled(once_step s) {
    return s == once_step::answer || s == once_step::tell || s == once_step::reused;
}

}  // namespace

once_run::once_run(std::shared_ptr<session_core> session, once_settings settings)
    : session_(std::move(session)), settings_(std::move(settings)), lock_(session_) {}

std::string once_run::new_run_id() {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string id;
    for (int half = 0; half < 2; ++half) {
        auto bits = session_->on().random();
        for (int i = 0; i < 16; ++i, bits >>= 4U) id += digits[bits & 15U];
    }
    return id;
}

void once_run::begin(completion<once_turn> done) {
    done_ = std::move(done);
    look();
}

void once_run::withdraw() {
    if (!writing_) return fail(errc::canceled);
    withdrawn_ = true;
}

// ---- reading and the lock -----------------------------------------------------------------------

void once_run::read(unique_function<void()> then) {
    request_ = session_->store().read(
        once_key_of(settings_.key), session_->request_by(),
        [this, then = std::move(then)](std::error_code error,
                                       const std::optional<record>& found) mutable {
            if (!error) {
                take(found);
                if (found && !known_) return fail(errc::invalid);
                attempts_ = 0;
                return then();
            }
            const bool passing = error == errc::unavailable || error == errc::busy ||
                                 kind_of(error) == error_kind::unknown;
            if (!passing) return fail(error);
            const auto lost = session_is_lost();
            if (!lost) return;
            if (*lost) return fail(errc::lost);
            retry([this, then = std::move(then)]() mutable { read(std::move(then)); });
        });
}

std::optional<bool> once_run::session_is_lost() {
    const auto here = std::weak_ptr<int>(life_);
    const bool lost = session_->observe() == lease_state::lost;
    return here.expired() ? std::nullopt : std::optional(lost);
}

void once_run::take(const std::optional<record>& found) {
    known_ = found ? decode_once(found->value) : std::nullopt;
    revision_ = found ? found->revision : must_be_absent;
}

void once_run::retry(unique_function<void()> f) {
    retry_ = session_->on().after(waits.wait(attempts_++, session_->on().random()), std::move(f));
}

// Most callers find it settled, and take no lock.
void once_run::look() {
    read([this] { judge(false); });
}

void once_run::acquire() {
    lock_request what;
    const auto name = once_lock_of(settings_.key);
    const bool shares = round_ == round::waited && session_->store().traits().shared;
    exclusive_ = !shares;
    what.parts = {{name, shares ? claim_kind::shared : claim_kind::exclusive, 0}};
    what.only_if_free = round_ == round::first;
    what.by = settings_.by;
    if (what.only_if_free) what.by = session_->on().now() + session_->request_timeout();
    lock_.acquire(std::move(what),
                  [this](std::error_code error, const grant&) { acquired(error); });
}

void once_run::acquired(std::error_code error) {
    // A try that had no answer is no reason to give up: waiting goes on while the session lives.
    const bool may_wait =
        error == errc::conflict || error == errc::unavailable || error == errc::not_acquired;
    if (round_ == round::first && may_wait) {
        round_ = round::waited;
        return acquire();
    }
    if (error) return fail(error);
    read([this] { judge(true); });
}

void once_run::judge(bool owner_gone) {
    const auto step = decide(known_ ? &*known_ : nullptr, settings_.wishes, owner_gone);
    if (is_settled(step)) {
        lock_.abandon();
        return succeed({step, *known_});
    }
    if (!owner_gone) return acquire();
    if (!exclusive_) {  // it is for one alone to go on from here
        lock_.abandon();
        round_ = round::queued;
        return acquire();
    }
    if (step == once_step::ask) return succeed({step, *known_});
    once_record next;
    next.run_id = step == once_step::begin_again ? known_->run_id : new_run_id();
    next.attempt = known_ ? known_->attempt + 1 : 1;
    run_as(std::move(next));
}

// ---- running ------------------------------------------------------------------------------------

void once_run::run_as(once_record next) {
    next.state = once_record::state_t::running;
    next.owner = settings_.label;
    next.since = settings_.wall_clock();
    next.fingerprint = settings_.wishes.fingerprint;
    next.payload.clear();
    write_running(std::move(next));
}

void once_run::write(once_record next, bool guarded, unique_function<void(std::error_code)> then) {
    const std::array<change, 1> one{change{once_key_of(settings_.key), encode(next), revision_}};
    const bool guards = guarded && session_->store().traits().guarded_writes;
    const bool ended =
        next.state == once_record::state_t::done || next.state == once_record::state_t::failed;
    request_ = session_->store().write(session_->lease_id(),
                                       guards ? std::optional(lock_.id()) : std::nullopt, one,
                                       ended ? settings_.keep : std::chrono::seconds(0),
                                       session_->on().now() + session_->request_timeout(),
                                       [this, next = std::move(next), then = std::move(then)](
                                           std::error_code error, std::uint64_t at) mutable {
                                           if (!error) {
                                               revision_ = at;
                                               known_ = std::move(next);
                                           }
                                           then(error);
                                       });
}

void once_run::write_running(once_record next) {
    writing_ = true;
    const auto before = revision_;
    write(next, true, [this, next, before](std::error_code error) {
        if (!error) return begun();
        if (kind_of(error) == error_kind::gone) return fail(errc::lost);
        const bool may_pass = error == errc::unavailable || error == errc::busy ||
                              error == errc::conflict || kind_of(error) == error_kind::unknown;
        if (!may_pass) return fail(error);
        retry([this, next, before] { read_back(next, before); });
    });
}

// What is there now tells whether it was written.
void once_run::read_back(const once_record& next, std::uint64_t before) {
    read([this, next, before] {
        if (known_ == next) return begun();
        // It may still be on its way: only the same again is safe to send, and only who holds the
        // lock has a reason to.
        const auto lost = session_is_lost();
        if (!lost) return;
        if (*lost || !lock_.held()) return fail(errc::lost);
        if (revision_ == before) return write_running(next);
        writing_ = false;
        if (withdrawn_) return fail(errc::canceled);
        judge(true);
    });
}

void once_run::begun() {
    writing_ = false;
    if (withdrawn_) return take_back(errc::canceled);
    if (!lock_.held()) return take_back(errc::lost);
    succeed({once_step::begin, *known_});
}

// It was written, and nothing was begun.
void once_run::take_back(std::error_code why) {
    auto next = *known_;
    next.state = once_record::state_t::undone;
    finished_ = [this, why](std::error_code, int) { fail(why); };
    write_end(std::move(next), session_->on().now() + session_->request_timeout());
}

void once_run::settle(std::optional<std::string> result, completion<once_turn> done) {
    done_ = std::move(done);
    auto next = *known_;
    if (!result) {
        ++next.attempt;
        return run_as(std::move(next));
    }
    next.state = once_record::state_t::done;
    next.payload = *std::move(result);
    finished_ = [this, next](std::error_code error, int) {
        if (error) return fail(error);
        succeed({once_step::answer, next});
    };
    write_end(next, session_->on().now() + session_->request_timeout());
}

void once_run::finish(once_record::state_t how, std::string payload, deadline by,
                      completion<int> done) {
    finished_ = std::move(done);
    auto next = *known_;
    next.state = how;
    next.payload = std::move(payload);
    write_end(std::move(next), by);
}

// Without the lock as a guard: when the record is as it was left, nobody else has run it, whatever
// became of the lock.
void once_run::write_end(once_record next, deadline by) {
    write(next, false, [this, next, by](std::error_code error) { wrote_end(next, by, error); });
}

void once_run::wrote_end(const once_record& next, deadline by, std::error_code error) {
    if (!error) return end({});
    const bool may_pass = error == errc::unavailable || error == errc::busy ||
                          error == errc::conflict || kind_of(error) == error_kind::unknown;
    if (!may_pass || session_->on().now() >= by) return end(error);
    request_ = session_->store().read(
        once_key_of(settings_.key), session_->on().now() + session_->request_timeout(),
        [this, next, by, error](std::error_code unread, const std::optional<record>& found) {
            if (!unread) {
                const auto now = found ? decode_once(found->value) : std::nullopt;
                if (now == next) return end({});
                // An earlier attempt cannot land any more once something else is there.
                if (!found || now != known_) return end(errc::conflict);
            }
            retry([this, next, by] { write_end(next, by); });
        });
}

// ---- answers ------------------------------------------------------------------------------------

void once_run::succeed(once_turn t) {
    attempts_ = 0;
    if (auto done = std::exchange(done_, nullptr)) done({}, std::move(t));
}

void once_run::fail(std::error_code error) {
    writing_ = false;
    request_.cancel();
    retry_.cancel();
    lock_.abandon();
    if (auto done = std::exchange(done_, nullptr)) done(error, {});
}

void once_run::end(std::error_code error) {
    lock_.abandon();
    if (auto done = std::exchange(finished_, nullptr)) done(error, 0);
}

}  // namespace trinco::detail
