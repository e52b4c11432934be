#include "lock/session_shell.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto slack = 500ms;      // beyond a deadline of the loop, for a busy machine
constexpr auto look_every = 10ms;  // whether an opening is in vain
constexpr auto callbacks_bound = 5'000ms;
constexpr std::size_t longest_label = 256;

std::string default_label() {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
    return std::string(host.data()) + " " + std::to_string(::getpid());
}

session_options completed(session_options options) {
    if (options.label.empty()) options.label = default_label();
    return options;
}

std::string out_of_range(const char* what, const std::string& value, const char* range) {
    return std::string("session option ") + what + " is " + value + "; allowed is " + range;
}

}  // namespace

bool awaited::set(std::error_code error) {
    {
        const std::lock_guard hold(mutex_);
        if (set_) return false;
        set_ = true;
        error_ = error;
    }
    done_.give();  // not under the mutex, for which who is woken would wait again
    return true;
}

bool awaited::wait_until(std::chrono::steady_clock::time_point by) {
    done_.wait_until(by);
    return is_set();
}

void awaited::wait() {
    done_.wait();
}

bool awaited::is_set() const {
    const std::lock_guard hold(mutex_);
    return set_;
}

std::error_code awaited::error() const {
    const std::lock_guard hold(mutex_);
    return error_;
}

std::string session_shell::complaint(const session_options& o) {
    if (o.ttl < lease_timing::shortest_ttl || o.ttl > lease_timing::longest_ttl) {
        return out_of_range("ttl", std::to_string(o.ttl.count()) + " s", "1 s to 86400 s");
    }
    if (o.label.size() > longest_label) {
        return out_of_range("label", std::to_string(o.label.size()) + " bytes long",
                            "at most 256 bytes");
    }
    if (o.open_timeout < 0ms || o.open_timeout > 1h) {
        return out_of_range("open_timeout", std::to_string(o.open_timeout.count()) + " ms",
                            "0 ms to 1 h");
    }
    if (o.request_timeout < 10ms || o.request_timeout > 1min) {
        return out_of_range("request_timeout", std::to_string(o.request_timeout.count()) + " ms",
                            "10 ms to 1 min");
    }
    return {};
}

session_shell::session_shell(lock_backend where, session_options options)
    : where_(std::move(where)), options_(completed(std::move(options))) {
    session_settings settings;
    settings.ttl = options_.ttl;
    settings.label = options_.label;
    settings.request_timeout = options_.request_timeout;
    settings.read_clocks = &session_shell::read_clocks;
    core_ =
        std::make_shared<session_core>(*where_.on, *where_.store, std::move(settings), where_.keep);
    view_ = core_->view();
}

// The core dies on its loop's thread, and before what it stands on.
session_shell::~session_shell() {
    if (where_.on_thread()) return;
    const auto gone = std::make_shared<awaited>();
    where_.on->post([core = std::move(core_), gone]() mutable {
        core.reset();
        gone->set({});
    });
    gone->wait_until(std::chrono::steady_clock::now() + slack);
}

clocks session_shell::read_clocks() {
    return {boot_clock::now(), std::chrono::system_clock::now()};
}

std::shared_ptr<awaited> session_shell::begin_to_open(std::optional<first_claim> first) {
    const auto answer = std::make_shared<awaited>();
    where_.on->post([self = shared_from_this(), answer, first = std::move(first)]() mutable {
        auto& core = *self->core_;
        core.when_lost([weak = self->weak_from_this()](std::error_code why) {
            if (const auto shell = weak.lock()) shell->ended(why);
        });
        unique_function<void()> then;
        if (first) {
            core.expect(std::move(first->parts), std::move(first->info), first->only_if_free,
                        first->bare);
            then = std::move(first->enter);
        }
        core.open(self->on().now() + self->options_.open_timeout,
                  [self, answer, then = std::move(then)](std::error_code error) mutable {
                      self->has_opened(error);
                      if (!error && then) then();
                      answer->set(error);
                  });
    });
    return answer;
}

std::error_code session_shell::opened(const std::shared_ptr<awaited>& answer,
                                      const std::function<bool()>& in_vain) {
    using steady = std::chrono::steady_clock;
    const auto bound = steady::now() + options_.open_timeout + options_.request_timeout + slack;
    while (!answer->wait_until(in_vain ? std::min(bound, steady::now() + look_every) : bound)) {
        if (steady::now() < bound && !(in_vain && in_vain())) continue;
        if (answer->set(errc::unavailable)) close();
    }
    return answer->error();
}

void session_shell::has_opened(std::error_code error) {
    const std::lock_guard hold(mutex_);
    if (error) {
        why_ = error;
        lost_.request_stop();  // nobody has asked for it yet
        return;
    }
    id_ = core_->lease_id();
    ttl_ = core_->ttl();
}

void session_shell::ended(std::error_code why) {
    // It goes with the call, so that what it owns ends on the user's side, too.
    auto f = std::exchange(options_.on_lost, nullptr);
    {
        const std::lock_guard hold(mutex_);
        why_ = why;
        if (!f && !token_taken_) {
            lost_.request_stop();  // nobody is told by it, so it takes no thread
            return;
        }
    }
    if (!f) return tell_loss(lost_, nullptr);
    tell_loss(lost_, [f = std::move(f), why] {
        if (why != errc::shut_down) f(why);
    });
}

// Whichever thread comes first requests the token: one of them may be in a callback that waits.
void session_shell::tell_loss(std::stop_source token, unique_function<void()> f) {
    losses_.post([token]() mutable { token.request_stop(); });
    callbacks_.post([token = std::move(token), f = std::move(f)]() mutable {
        token.request_stop();
        if (f) f();
    });
}

std::error_code session_shell::close() {
    const auto answer = std::make_shared<awaited>();
    if (on_loop_thread()) answer->set(errc::unknown_outcome);
    where_.on->post([self = shared_from_this(), answer] {
        self->core_->close(self->on().now() + self->options_.request_timeout,
                           [answer](std::error_code error, ended_claims) { answer->set(error); });
    });
    if (!answer->wait_until(std::chrono::steady_clock::now() + options_.request_timeout + slack)) {
        answer->set(errc::unknown_outcome);
    }
    return answer->error();
}

void session_shell::drain_callbacks() {
    if (on_loop_thread()) return;
    const auto by = std::chrono::steady_clock::now() + callbacks_bound;
    losses_.drain_until(by);
    callbacks_.drain_until(by);
}

std::error_code session_shell::why() const {
    const std::lock_guard hold(mutex_);
    if (why_) return why_;
    return state() == lease_state::lost ? make_error_code(errc::lost) : std::error_code();
}

std::stop_token session_shell::lost() const {
    const std::lock_guard hold(mutex_);
    token_taken_ = true;
    return lost_.get_token();
}

std::string session_shell::id() const {
    const std::lock_guard hold(mutex_);
    return id_;
}

int session_shell::live_descriptor() const {
    return where_.store->live_descriptor(id());
}

std::string session_shell::trouble(const std::error_code& told) const {
    if (on_loop_thread()) return where_.store->trouble(told);
    struct question {
        awaited told;
        std::string said;  // written before `told` is set
    };
    const auto q = std::make_shared<question>();
    where_.on->post([q, told, store = where_.store, keep = where_.keep] {
        q->said = store->trouble(told);
        q->told.set({});
    });
    const bool answered = q->told.wait_until(std::chrono::steady_clock::now() + 1s);
    return answered ? q->said : std::string();
}

std::string session_shell::reason(const std::error_code& told) const {
    // Of everything else the store knows nothing.
    const bool is_of_store = told == errc::unavailable || told == errc::unknown_outcome ||
                             told == errc::busy || told == errc::denied || told == errc::invalid;
    auto said = is_of_store ? trouble(told) : std::string();
    return said.empty() ? told.message() : said;
}

std::chrono::seconds session_shell::ttl() const {
    const std::lock_guard hold(mutex_);
    return ttl_;
}

}  // namespace trinco::detail
