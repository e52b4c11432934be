#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "core/names.hpp"
#include "lock/session_shell.hpp"
#include "trinco/election.hpp"

namespace trinco {
namespace detail {
namespace {

using namespace std::chrono_literals;

constexpr auto callback_bound = 5s;

}  // namespace

// What is told comes from the loop's thread and is called on the session's thread of callbacks.
class leader_watch_shell : public std::enable_shared_from_this<leader_watch_shell> {
public:
    using function = std::function<void(const std::optional<leader>&)>;

    leader_watch_shell(std::shared_ptr<session_shell> session, function seen)
        : session_(std::move(session)), seen_(std::make_shared<const function>(std::move(seen))) {}

    void start(std::string name) {
        session_->on().post([self = shared_from_this(), name = std::move(name)] {
            self->watch_ = self->session_->core()->store().observe(
                name, [weak = self->weak_from_this()](std::optional<entry> holder) {
                    if (const auto here = weak.lock()) here->changed(std::move(holder));
                });
        });
    }

    void retire() {
        {
            std::unique_lock hold(mutex_);
            seen_.reset();
            if (calling_ != std::this_thread::get_id() && !session_->on_loop_thread()) {
                called_.wait_for(hold, callback_bound,
                                 [&] { return calling_ == std::thread::id(); });
            }
        }
        session_->on().post([self = shared_from_this()] { self->watch_.cancel(); });
    }

    [[nodiscard]] std::error_code check() const { return session_->check(); }

private:
    void changed(std::optional<entry> holder) {
        std::optional<leader> now;
        if (holder) now = leader{std::move(holder->info), holder->token};
        if (told_ && *told_ == now) return;
        told_ = now;
        session_->callbacks().post(
            [self = shared_from_this(), now = std::move(now)] { self->call(now); });
    }

    void call(const std::optional<leader>& now) {
        std::shared_ptr<const function> f;
        {
            const std::lock_guard hold(mutex_);
            if (!seen_) return;
            f = seen_;
            calling_ = std::this_thread::get_id();
        }
        (*f)(now);
        f.reset();
        const std::lock_guard hold(mutex_);
        calling_ = {};
        called_.notify_all();
    }

    const std::shared_ptr<session_shell> session_;
    op watch_;                                   // the loop's thread alone
    std::optional<std::optional<leader>> told_;  // that one's, too
    std::mutex mutex_;                           // of what follows
    std::shared_ptr<const function> seen_;
    std::thread::id calling_;
    std::condition_variable called_;
};

}  // namespace detail

namespace {

void retire(std::shared_ptr<detail::leader_watch_shell>& shell) {
    if (!shell) return;
    if (shell->check() == errc::forked) {
        // The parent's; nothing of it may be touched here.
        static_cast<void>(new std::shared_ptr<detail::leader_watch_shell>(std::move(shell)));
        return;
    }
    shell->retire();
    shell.reset();
}

}  // namespace

leader_watch::leader_watch(session& on, std::string_view name,
                           std::function<void(const std::optional<leader>&)> seen) {
    const auto session = detail::lock_access::shell(on);
    if (!session) {
        throw lock_error(errc::invalid, "a leader_watch needs a session that was opened");
    }
    if (const auto error = session->check()) {
        throw lock_error(error, "leader_watch '" + std::string(name) + "': " + error.message());
    }
    if (const auto bad = detail::check_lock_name(name)) throw lock_error(errc::invalid, *bad);
    if (!seen) throw lock_error(errc::invalid, "the function of a leader_watch is empty");
    shell_ = std::make_shared<detail::leader_watch_shell>(session, std::move(seen));
    shell_->start(std::string(name));
}

leader_watch::~leader_watch() {
    retire(shell_);
}

leader_watch::leader_watch(leader_watch&&) noexcept = default;

leader_watch& leader_watch::operator=(leader_watch&& other) noexcept {
    if (this != &other) {
        retire(shell_);
        shell_ = std::move(other.shell_);
    }
    return *this;
}

}  // namespace trinco
