#include "lock/once_call.hpp"

#include <utility>

#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto slack = 500ms;  // beyond a deadline of the loop, for a busy machine

}  // namespace

once_call::once_call(std::shared_ptr<session_shell> session, once_settings settings)
    : session_(std::move(session)),
      run_(std::make_unique<once_run>(session_->core(), std::move(settings))) {}

once_call::~once_call() = default;

once_call::answer once_call::wait_for(const std::shared_ptr<waiting>& w) const {
    w->told.wait();
    const auto error = w->told.error();
    return {error, error ? once_turn{} : std::move(w->turn)};
}

once_call::answer once_call::begin(const std::stop_token& stop) {
    const auto w = std::make_shared<waiting>();
    session_->on().post([self = shared_from_this(), w] {
        if (!self->run_) return;  // ended already
        self->run_->when_lost([session = self->session_, lost = self->lost_](std::error_code) {
            session->tell_loss(lost, nullptr);
        });
        self->run_->begin([w](std::error_code error, once_turn t) {
            w->turn = std::move(t);
            w->told.set(error);
        });
    });
    // What has been answered is answered; else withdrawing answers, perhaps a moment later.
    const std::stop_callback on_stop(stop, [self = weak_from_this(), w] {
        const auto here = self.lock();
        here->session_->on().post([here, w] {
            if (here->run_ && !w->told.is_set()) here->run_->withdraw();
        });
    });
    return wait_for(w);
}

once_call::answer once_call::settle(std::optional<std::string> result) {
    const auto w = std::make_shared<waiting>();
    session_->on().post([self = shared_from_this(), w, result = std::move(result)]() mutable {
        self->run_->settle(std::move(result), [w](std::error_code error, once_turn t) {
            w->turn = std::move(t);
            w->told.set(error);
        });
    });
    return wait_for(w);
}

std::error_code once_call::finish(bool failed, std::string payload,
                                  std::chrono::milliseconds within) {
    const auto w = std::make_shared<awaited>();
    session_->on().post(
        [self = shared_from_this(), w, failed, payload = std::move(payload), within]() mutable {
            self->run_->finish(failed ? once_record::state_t::failed : once_record::state_t::done,
                               std::move(payload), self->session_->on().now() + within,
                               [w](std::error_code error, int) { w->set(error); });
        });
    const auto patience = within + 2 * session_->request_timeout() + slack;
    if (!w->wait_until(std::chrono::steady_clock::now() + patience)) {
        w->set(errc::unknown_outcome);
    }
    return w->error();
}

void once_call::end() {
    session_->on().post([self = shared_from_this()] { self->run_.reset(); });
}

}  // namespace trinco::detail
