#include "trinco/mutex.hpp"

#include <utility>

#include "core/names.hpp"
#include "lock/mutex_shell.hpp"

namespace trinco {
namespace {

using detail::mutex_shell;

constexpr std::size_t longest_info = 4'096;

std::shared_ptr<mutex_shell> make(session& on, std::string_view name, std::string_view info) {
    auto session = detail::lock_access::shell(on);
    if (!session) {
        const auto why = on.why();
        throw lock_error(errc::invalid, why == errc::lost
                                            ? "a mutex needs a session; this one was moved from"
                                            : "a mutex needs a session; this one was not opened: " +
                                                  why.message());
    }
    if (const auto bad = detail::check_lock_name(name)) throw lock_error(errc::invalid, *bad);
    if (info.size() > longest_info) {
        throw lock_error(errc::invalid, "the info of mutex '" + std::string(name) + "' has " +
                                            std::to_string(info.size()) +
                                            " bytes; at most 4096 are allowed");
    }
    std::vector<detail::part> parts{{std::string(name), detail::claim_kind::exclusive, 0}};
    return std::make_shared<mutex_shell>(std::move(session), std::move(parts), std::string(info));
}

void retire(std::shared_ptr<mutex_shell>& shell) {
    if (!shell) return;
    if (shell->check() == errc::forked) {
        // The parent's; nothing of it may be touched here.
        static_cast<void>(new std::shared_ptr<mutex_shell>(std::move(shell)));
        return;
    }
    shell->retire();
    shell.reset();
}

[[noreturn]] void fail(const mutex_shell& m, std::error_code error) {
    throw lock_error(error, "mutex '" + m.name() + "': " +
                                (error == errc::shut_down
                                     ? "its session is closed, which frees its locks; make a new "
                                       "session, and a mutex on it"
                                     : error.message()));
}

bool taken(const std::error_code& error) {
    return error == errc::conflict || error == errc::not_acquired;
}

}  // namespace

mutex::mutex(session& on, std::string_view name, std::string_view info)
    : shell_(make(on, name, info)) {}

mutex::~mutex() {
    retire(shell_);
}

mutex::mutex(mutex&&) noexcept = default;

mutex& mutex::operator=(mutex&& other) noexcept {
    if (this != &other) {
        retire(shell_);
        shell_ = std::move(other.shell_);
    }
    return *this;
}

void mutex::lock() {
    lock(std::stop_token());
}

void mutex::lock(std::error_code& error) {
    lock(std::stop_token(), error);
}

void mutex::lock(std::stop_token stop) {
    std::error_code error;
    lock(std::move(stop), error);
    if (error) fail(*shell_, error);
}

void mutex::lock(std::stop_token stop, std::error_code& error) {
    error = shell_->check();
    if (!error) error = shell_->lock(std::move(stop));
}

bool mutex::try_lock() {
    std::error_code error;
    const bool got = try_lock(error);
    if (error && !taken(error)) fail(*shell_, error);
    return got;
}

bool mutex::try_lock(std::error_code& error) {
    error = shell_->check();
    if (!error) error = shell_->try_lock();
    return !error;
}

bool mutex::wait_for(std::chrono::nanoseconds d) {
    std::error_code error;
    const bool got = wait_for(d, error);
    if (error && !taken(error)) fail(*shell_, error);
    return got;
}

bool mutex::wait_for(std::chrono::nanoseconds d, std::error_code& error) {
    error = shell_->check();
    if (!error) error = shell_->try_lock_for(d);
    return !error;
}

void mutex::async_lock(std::function<void(std::error_code)> done) {
    if (const auto error = shell_->check()) fail(*shell_, error);
    shell_->async_lock(std::move(done));
}

void mutex::cancel() {
    if (!shell_->check()) shell_->cancel();
}

void mutex::unlock() noexcept {
    std::error_code ignored;
    unlock(ignored);
}

void mutex::unlock(std::error_code& error) {
    error = shell_->check();
    if (!error) error = shell_->unlock();
}

bool mutex::held() const {
    return !shell_->check() && shell_->held();
}

std::chrono::nanoseconds mutex::valid_for() const {
    return shell_->check() ? std::chrono::nanoseconds(0) : shell_->valid_for();
}

std::uint64_t mutex::fencing_token() const {
    return shell_->check() ? 0 : shell_->token();
}

std::stop_token mutex::lost() const {
    return shell_->check() ? std::stop_token() : shell_->lost();
}

void mutex::on_loss(std::function<void(std::error_code)> f) {
    if (!shell_->check()) shell_->on_loss(std::move(f));
}

const std::string& mutex::name() const noexcept {
    return shell_->name();
}

}  // namespace trinco
