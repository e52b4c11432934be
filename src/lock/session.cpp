#include "trinco/session.hpp"

#include <utility>

#include "lock/session_shell.hpp"
#include "store/open.hpp"

namespace trinco {
namespace {

using detail::lock_backend;
using detail::session_shell;

lock_backend backend_of(const std::shared_ptr<detail::store_state>& state) {
    lock_backend where;
    where.on = &state->on();
    where.store = state->locks();
    where.keep = state;
    where.check = [state] { return state->check(); };
    where.on_thread = [state] { return state->on().on_thread(); };
    return where;
}

// Why no session can be made, in one sentence; empty when one can.
std::pair<std::error_code, std::string> obstacle(const store& over,
                                                 const session_options& options) {
    const auto state = detail::store_access::state(over);
    if (!state) return {errc::invalid, "a session needs an open store; this one is empty"};
    if (const auto error = state->check()) {
        return {error, "the store '" + state->url() + "' cannot be used here: " + error.message()};
    }
    if (state->locks() == nullptr) {
        return {errc::not_supported, "the store '" + state->url() + "' does not keep locks"};
    }
    if (auto text = session_shell::complaint(options); !text.empty()) {
        return {errc::invalid, std::move(text)};
    }
    const auto& t = state->locks()->traits();
    if (options.ttl < t.ttl_min || options.ttl > t.ttl_max) {
        return {errc::invalid, "session option ttl is " + std::to_string(options.ttl.count()) +
                                   " s; the store '" + state->url() + "' allows " +
                                   std::to_string(t.ttl_min.count()) + " s to " +
                                   std::to_string(t.ttl_max.count()) + " s"};
    }
    return {};
}

// Nothing of a parent's process may be touched in a child, not even its mutexes: it is left alone.
void leave_behind(std::shared_ptr<session_shell>& shell) {
    static_cast<void>(new std::shared_ptr<session_shell>(std::move(shell)));
}

void retire(std::shared_ptr<session_shell>& shell) {
    if (!shell) return;
    if (shell->check() == errc::forked) {
        leave_behind(shell);
        return;
    }
    shell->close();
    shell->drain_callbacks();
    shell.reset();
}

}  // namespace

lock_error::lock_error(std::error_code code, std::string sentence)
    : std::system_error(code), sentence_("trinco: " + std::move(sentence)) {}

session::session(std::shared_ptr<session_shell> shell) noexcept : shell_(std::move(shell)) {}

std::shared_ptr<session_shell> detail::lock_access::make_shell(const store& over,
                                                               const session_options& options) {
    if (auto [error, text] = obstacle(over, options); error) {
        throw lock_error(error, std::move(text));
    }
    return std::make_shared<session_shell>(backend_of(store_access::state(over)), options);
}

lock_error detail::lock_access::no_session(const store& over, const session_shell& of,
                                           const std::error_code& error) {
    return {error, "no session of locks on '" + std::string(over.url()) + "': " + of.reason(error)};
}

session::session(const store& over, const session_options& options) {
    auto shell = detail::lock_access::make_shell(over, options);
    if (const auto error = shell->open()) {
        throw detail::lock_access::no_session(over, *shell, error);
    }
    shell_ = std::move(shell);
}

session::session(const store& over, const session_options& options, std::error_code& error) {
    error = refused_ = obstacle(over, options).first;
    if (error) return;
    shell_ =
        std::make_shared<session_shell>(backend_of(detail::store_access::state(over)), options);
    error = shell_->open();
}

session::~session() {
    retire(shell_);
}

session::session(session&& other) noexcept
    : shell_(std::move(other.shell_)), refused_(std::exchange(other.refused_, {})) {}

session& session::operator=(session&& other) noexcept {
    if (this != &other) {
        retire(shell_);
        shell_ = std::move(other.shell_);
        refused_ = std::exchange(other.refused_, {});
    }
    return *this;
}

session_state session::state() const {
    if (!shell_ || shell_->check()) return session_state::lost;
    switch (shell_->state()) {
        case detail::lease_state::held: return session_state::held;
        case detail::lease_state::uncertain: return session_state::uncertain;
        case detail::lease_state::lost: break;
    }
    return session_state::lost;
}

std::chrono::nanoseconds session::valid_for() const {
    if (!shell_ || shell_->check()) return {};
    return shell_->valid_for();
}

std::stop_token session::lost() const {
    if (shell_) return shell_->lost();
    std::stop_source over;
    over.request_stop();
    return over.get_token();
}

std::error_code session::why() const {
    if (!shell_) return refused_ ? refused_ : make_error_code(errc::lost);
    if (const auto error = shell_->check()) return error;
    return shell_->why();
}

std::string session::id() const {
    return shell_ && !shell_->check() ? shell_->id() : std::string();
}

std::chrono::seconds session::ttl() const {
    return shell_ && !shell_->check() ? shell_->ttl() : std::chrono::seconds(0);
}

void session::close() {
    std::error_code error;
    close(error);
    if (error)
        throw lock_error(error, "the session was not closed at the store: " + error.message());
}

void session::close(std::error_code& error) {
    error.clear();
    if (!shell_) return;
    error = shell_->check();
    if (!error) error = shell_->close();
}

}  // namespace trinco
