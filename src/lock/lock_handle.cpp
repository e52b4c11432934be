#include "trinco/lock_handle.hpp"

#include <utility>

#include "lock/lock_shell.hpp"

namespace trinco {
namespace {

using detail::lock_shell;

void retire(std::shared_ptr<lock_shell>& shell) {
    if (!shell) return;
    if (shell->check() == errc::forked) {
        // The parent's; nothing of it may be touched here.
        static_cast<void>(new std::shared_ptr<lock_shell>(std::move(shell)));
        return;
    }
    shell->retire();
    shell.reset();
}

[[noreturn]] void fail(const lock_shell& l, std::error_code error) {
    std::string sentence = l.kind();
    const char* before = " '";
    for (const auto& p : l.parts()) sentence += std::exchange(before, "', '") + p.name;
    if (error == errc::shut_down) {
        sentence += "': its session is closed, which frees its locks; make a new session, and a " +
                    std::string(l.kind()) + " on it";
    } else if (error == errc::limit_mismatch) {
        sentence += "': those who hold it or wait for it count another number of permits than " +
                    std::to_string(l.parts().front().n) + "; all must name the same";
    } else {
        sentence += "': " + l.reason(error);
    }
    throw lock_error(error, std::move(sentence));
}

bool taken(const std::error_code& error) {
    return error == errc::conflict || error == errc::not_acquired;
}

}  // namespace

lock_handle::lock_handle(std::shared_ptr<lock_shell> shell) noexcept : shell_(std::move(shell)) {}

lock_handle::~lock_handle() {
    retire(shell_);
}

lock_handle::lock_handle(lock_handle&&) noexcept = default;

lock_handle& lock_handle::operator=(lock_handle&& other) noexcept {
    if (this != &other) {
        retire(shell_);
        shell_ = std::move(other.shell_);
    }
    return *this;
}

void lock_handle::wait(std::stop_token stop, taking how) {
    std::error_code error;
    wait(std::move(stop), error, how);
    if (error) fail(*shell_, error);
}

void lock_handle::wait(std::stop_token stop, std::error_code& error, taking how) {
    error = shell_->check();
    if (!error) error = shell_->lock(std::move(stop), static_cast<lock_shell::way>(how));
}

bool lock_handle::wait_for(std::chrono::nanoseconds d, taking how) {
    std::error_code error;
    const bool got = wait_for(d, error, how);
    if (error && !taken(error)) fail(*shell_, error);
    return got;
}

bool lock_handle::wait_for(std::chrono::nanoseconds d, std::error_code& error, taking how) {
    error = shell_->check();
    if (!error) error = shell_->try_lock_for(d, static_cast<lock_shell::way>(how));
    return !error;
}

void lock_handle::begin(std::function<void(std::error_code)> done, taking how) {
    if (const auto error = shell_->check()) fail(*shell_, error);
    shell_->async_lock(std::move(done), static_cast<lock_shell::way>(how));
}

void lock_handle::cancel() {
    if (!shell_->check()) shell_->cancel();
}

void lock_handle::give_back(std::error_code& error, taking how) {
    error = shell_->check();
    if (!error) error = shell_->unlock(static_cast<lock_shell::way>(how));
}

void lock_handle::describe(std::string_view info) {
    if (!shell_->check()) shell_->describe(std::string(info));
}

void lock_handle::publish(std::string_view info, std::error_code& error) {
    error = shell_->check();
    if (!error) error = shell_->publish(std::string(info));
}

void lock_handle::raise(std::error_code error) const {
    fail(*shell_, error);
}

bool lock_handle::held() const {
    return !shell_->check() && shell_->held();
}

std::chrono::nanoseconds lock_handle::valid_for() const {
    return shell_->check() ? std::chrono::nanoseconds(0) : shell_->valid_for();
}

std::stop_token lock_handle::lost() const {
    return shell_->check() ? std::stop_token() : shell_->lost();
}

void lock_handle::on_loss(std::function<void(std::error_code)> f) {
    if (!shell_->check()) shell_->on_loss(std::move(f));
}

std::uint64_t lock_handle::token_of(std::size_t part) const {
    return shell_->check() ? 0 : shell_->token(part);
}

const std::string& lock_handle::name_of(std::size_t part) const noexcept {
    return shell_->parts()[part].name;
}

std::size_t lock_handle::parts() const noexcept {
    return shell_->parts().size();
}

}  // namespace trinco
