#include "lock/lock_shell.hpp"

#include <utility>

#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

// The loop ends a wait by its deadline itself and knows more about it; a loop that is late is not
// waited for.
constexpr auto grace = 20ms;
constexpr auto slack = 500ms;
constexpr auto callback_bound = 5s;
constexpr std::chrono::nanoseconds longest_wait = 24h * 365 * 100;

}  // namespace

lock_shell::lock_shell(std::shared_ptr<session_shell> session, std::vector<part> parts,
                       std::string info, const char* kind, bool bare)
    : session_(std::move(session)),
      parts_(std::move(parts)),
      kind_(kind),
      bare_(bare),
      info_(std::move(info)) {}

lock_shell::begun lock_shell::begin(lock_request what, way how, callback done, bool quick) {
    what.parts = parts_;
    if (how == way::shared) {
        for (auto& p : what.parts) p.kind = claim_kind::shared;
    }
    auto w = std::make_shared<waiter>();
    w->how = how;
    w->done = std::move(done);
    w->quick = quick;
    const std::lock_guard hold(mutex_);
    if (held_ || waiter_) return {errc::would_deadlock, std::move(w)};
    what.info = info_;
    what.bare = bare_;
    session_->on().post([self = shared_from_this(), w, what = std::move(what)]() mutable {
        self->start(w, std::move(what));
    });
    waiter_ = w;
    return {{}, std::move(w)};
}

void lock_shell::start(const std::shared_ptr<waiter>& w, lock_request what) {
    {
        const std::lock_guard hold(mutex_);
        if (waiter_ != w) return;  // given up already
    }
    if (!claim_) {
        claim_ = std::make_unique<lock_claim>(session_->core());
        claim_->when_lost([this](std::error_code why) { lost(why); });
    }
    claim_->acquire(std::move(what),
                    [self = shared_from_this(), w](std::error_code error, grant g) {
                        self->answered(w, error, g);
                    });
}

void lock_shell::answered(const std::shared_ptr<waiter>& w, std::error_code error, const grant& g) {
    {
        const std::lock_guard hold(mutex_);
        if (waiter_ != w) return;  // given up: an abandon follows
        waiter_.reset();
        if (!error) {
            held_ = w->how;
            ++grants_;
            tokens_ = g.tokens;
            loss_.clear();
            lost_ = w->lost;
            token_taken_ = false;
        }
    }
    tell(w, error);
}

void lock_shell::tell(const std::shared_ptr<waiter>& w, std::error_code error) {
    if (!w->answer.set(error) || !w->done) return;
    if (w->quick) return std::exchange(w->done, nullptr)(error);
    // It goes with the call: what it owns, such as this lock, must not end on the loop's thread.
    session_->callbacks().post([done = std::exchange(w->done, nullptr), error] { done(error); });
}

void lock_shell::give_up(const std::shared_ptr<waiter>& w, std::error_code why) {
    {
        const std::lock_guard hold(mutex_);
        if (waiter_ != w || !w) return;
        session_->on().post([self = shared_from_this()] {
            if (self->claim_) self->claim_->abandon();
        });
        waiter_.reset();
    }
    tell(w, why);
}

std::error_code lock_shell::lock(std::stop_token stop, way how) {
    if (session_->on_loop_thread()) return errc::would_deadlock;
    const auto [error, w] = begin({}, how, nullptr);
    if (error) return error;
    const std::stop_callback on_stop(std::move(stop),
                                     [this, w = w] { give_up(w, errc::canceled); });
    w->answer.wait();
    return w->answer.error();
}

std::error_code lock_shell::try_lock(way how) {
    if (session_->on_loop_thread()) return errc::would_deadlock;
    lock_request what;
    what.only_if_free = true;
    what.by = boot_clock::now() + session_->request_timeout();
    const auto [error, w] = begin(std::move(what), how, nullptr);
    if (error) return error;
    const auto by = std::chrono::steady_clock::now() + session_->request_timeout() + grace;
    if (!w->answer.wait_until(by)) give_up(w, errc::unavailable);
    w->answer.wait();
    return w->answer.error();
}

std::error_code lock_shell::try_lock_for(std::chrono::nanoseconds d, way how) {
    if (d <= 0ns) return try_lock(how);
    if (session_->on_loop_thread()) return errc::would_deadlock;
    d = std::min(d, longest_wait);
    lock_request what;
    what.by = boot_clock::now() + d;
    const auto by = std::chrono::steady_clock::now() + d + grace;
    const auto [error, w] = begin(std::move(what), how, nullptr);
    if (error) return error;
    if (!w->answer.wait_until(by)) give_up(w, errc::not_acquired);
    w->answer.wait();
    return w->answer.error();
}

void lock_shell::async_lock(callback done, way how) {
    const auto [error, w] = begin({}, how, std::move(done));
    if (error) tell(w, error);
}

void lock_shell::async_lock_quick(callback done, lock_request how) {
    const auto [error, w] = begin(std::move(how), way::own, std::move(done), true);
    if (error) tell(w, error);
}

void lock_shell::cancel() {
    std::shared_ptr<waiter> w;
    {
        const std::lock_guard hold(mutex_);
        w = waiter_;
    }
    give_up(w, errc::canceled);
}

void lock_shell::describe(std::string info) {
    const std::lock_guard hold(mutex_);
    info_ = std::move(info);
}

std::error_code lock_shell::publish(std::string info) {
    if (session_->on_loop_thread()) return errc::would_deadlock;
    const auto answer = std::make_shared<awaited>();
    {
        const std::lock_guard hold(mutex_);
        if (!held_) return errc::not_held;
        info_ = info;
        session_->on().post([self = shared_from_this(), answer, info = std::move(info)]() mutable {
            self->claim_->publish(std::move(info),
                                  [answer](std::error_code error) { answer->set(error); });
        });
    }
    if (!answer->wait_until(std::chrono::steady_clock::now() + session_->request_timeout() +
                            slack)) {
        answer->set(errc::unknown_outcome);
    }
    return answer->error();
}

std::uint64_t lock_shell::grant_number() const {
    const std::lock_guard hold(mutex_);
    return held_ ? grants_ : 0;
}

lock_shell::written lock_shell::write(std::uint64_t grant, std::vector<change> changes,
                                      std::chrono::seconds keep) {
    if (session_->on_loop_thread()) return {errc::would_deadlock};
    if (!session_->core()->store().traits().guarded_writes) return {errc::not_supported};
    struct waiting {
        awaited told;
        std::uint64_t revision = 0;  // written before `told` is set
    };
    const auto w = std::make_shared<waiting>();
    {
        const std::lock_guard hold(mutex_);
        if (grant == 0) return {errc::not_held};
        if (!held_ && loss_ && loss_ != errc::lost) return {loss_};  // such as shut_down
        const bool believed = held_ && session_->state() != lease_state::lost;
        if (!believed || grant != grants_) return {errc::lost};
        session_->on().post([self = shared_from_this(), w, changes = std::move(changes), keep] {
            self->claim_->write(changes, keep, [w](std::error_code error, std::uint64_t at) {
                w->revision = at;
                w->told.set(error);
            });
        });
    }
    if (!w->told.wait_until(std::chrono::steady_clock::now() + session_->request_timeout() +
                            slack)) {
        w->told.set(errc::unknown_outcome);
    }
    const auto error = w->told.error();
    if (error) return {error == errc::not_held ? make_error_code(errc::lost) : error};
    return {{}, w->revision};
}

std::error_code lock_shell::unlock(way how) {
    return unlock_any(how);
}

// Without a way: however it is held.
std::error_code lock_shell::unlock_any(std::optional<way> how) {
    const auto answer = std::make_shared<awaited>();
    {
        const std::lock_guard hold(mutex_);
        if (held_ && how && *held_ != *how) return errc::not_held;
        if (!held_) return loss_ ? std::exchange(loss_, {}) : make_error_code(errc::not_held);
        session_->on().post([self = shared_from_this(), answer] {
            self->claim_->release([answer](std::error_code error) { answer->set(error); });
        });
        held_.reset();
        lost_.reset();
    }
    if (session_->on_loop_thread()) return errc::unknown_outcome;
    if (!answer->wait_until(std::chrono::steady_clock::now() + session_->request_timeout() +
                            slack)) {
        answer->set(errc::unknown_outcome);
    }
    // Lost in the same instant.
    return answer->error() == errc::not_held ? make_error_code(errc::lost) : answer->error();
}

void lock_shell::retire() {
    cancel();
    unlock_any(std::nullopt);
    on_loss(nullptr);
    session_->on().post([self = shared_from_this()] { self->claim_.reset(); });
}

void lock_shell::lost(std::error_code why) {
    std::stop_source token(std::nostopstate);
    {
        const std::lock_guard hold(mutex_);
        if (!held_) return;
        token = *lost_;
        if (why != errc::evicted) {
            held_.reset();
            loss_ = why;
        }
        if (!token_taken_ && !on_loss_) {
            token.request_stop();  // nobody is told by it, so it takes no thread
            return;
        }
    }
    session_->tell_loss(std::move(token),
                        [self = shared_from_this(), why] { self->call_on_loss(why); });
}

void lock_shell::call_on_loss(std::error_code why) {
    std::shared_ptr<const callback> f;
    {
        const std::lock_guard hold(mutex_);
        if (!on_loss_) return;
        f = on_loss_;
        calling_ = std::this_thread::get_id();
    }
    (*f)(why);
    f.reset();
    const std::lock_guard hold(mutex_);
    calling_ = {};
    called_.notify_all();
}

bool lock_shell::held() const {
    const std::lock_guard hold(mutex_);
    return held_ && session_->state() != lease_state::lost;
}

std::chrono::nanoseconds lock_shell::valid_for() const {
    const std::lock_guard hold(mutex_);
    return held_ ? session_->valid_for() : std::chrono::nanoseconds(0);
}

std::uint64_t lock_shell::token(std::size_t part) const {
    const std::lock_guard hold(mutex_);
    return part < tokens_.size() ? tokens_[part] : 0;
}

std::stop_token lock_shell::lost() const {
    const std::lock_guard hold(mutex_);
    token_taken_ = true;
    return lost_ ? lost_->get_token() : std::stop_token();
}

void lock_shell::on_loss(callback f) {
    auto next = f ? std::make_shared<const callback>(std::move(f)) : nullptr;
    std::unique_lock hold(mutex_);
    on_loss_.swap(next);
    if (calling_ == std::this_thread::get_id() || session_->on_loop_thread()) return;
    called_.wait_for(hold, callback_bound, [&] { return calling_ == std::thread::id(); });
}

}  // namespace trinco::detail
