#include "apps/trinco/once/once_contender.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/lock/opening_time.hpp"
#include "apps/trinco/lock/session_words.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using detail::lock_access;
using std::chrono::milliseconds;

constexpr milliseconds slack{500};

}  // namespace

// Where threads of the library leave word. Shared with them: what they say may come late.
struct once_contender::bell {
    bell() : event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (event < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    }
    ~bell() { ::close(event); }
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;

    void ring() const noexcept {
        const std::uint64_t one = 1;
        static_cast<void>(::write(event, &one, sizeof one));
    }
    void answered(std::error_code error, detail::once_turn turn) {
        const std::lock_guard hold(m);
        said.answer = error;
        said.turn = std::move(turn);
        ring();
        answer_came.notify_all();
    }
    [[nodiscard]] bool has_answer() const {
        const std::lock_guard hold(m);
        return said.answer.has_value();
    }
    void wait_for_answer(std::chrono::steady_clock::time_point by) {
        std::unique_lock hold(m);
        answer_came.wait_until(hold, by, [&] { return said.answer.has_value(); });
    }
    void lost(std::error_code why) {
        const std::lock_guard hold(m);
        said.loss = why;
        ring();
    }

    const int event;
    mutable std::mutex m;
    std::condition_variable answer_came;
    news said;
};

once_contender::once_contender(const store& at, const once_plan& plan) : at_(at), plan_(plan) {
    if (plan.wait) by_ = detail::boot_clock::now() + *plan.wait;
}

once_contender::~once_contender() {
    if (!run_) return;
    lock_access::shell(*session_)->on().post([run = run_] { run->reset(); });
}

std::optional<problem> once_contender::enter() {
    if (run_) lock_access::shell(*session_)->on().post([run = run_] { run->reset(); });
    session_options options;
    options.ttl = plan_.ttl;
    options.label = plan_.label;
    const bool waits = plan_.wait != milliseconds(0);
    if (waits) options.open_timeout = opening_time(by_, !has_entered_);
    try {
        session_.reset();
        bell_ = std::make_shared<bell>();
        const auto shell = lock_access::make_shell(at_, options);
        const auto opening = shell->begin_to_open(std::nullopt);
        if (const auto error = shell->opened(opening, waits ? nullptr : nobody_listens_at(at_)))
            throw lock_access::no_session(at_, *shell, error);
        session_ = lock_access::wrap(shell);
    } catch (const std::system_error& e) {
        return problem{exit_code_of(e.code()), without_name(e.what())};
    }
    if (!std::exchange(has_entered_, true)) say_longer_ttl(at_, *session_, plan_.ttl);
    detail::once_settings what;
    what.key = plan_.key;
    what.label = plan_.label;
    what.wishes = plan_.wishes;
    what.keep = plan_.keep;
    what.by = by_;
    what.wall_clock = [] {
        return std::chrono::duration_cast<milliseconds>(
            std::chrono::system_clock::now().time_since_epoch());
    };
    const auto shell = lock_access::shell(*session_);
    run_ = std::make_shared<std::unique_ptr<detail::once_run>>();
    shell->on().post([run = run_, shell, bell = bell_, what = std::move(what)]() mutable {
        *run = std::make_unique<detail::once_run>(shell->core(), std::move(what));
        (*run)->when_lost([bell](std::error_code why) { bell->lost(why); });
        (*run)->begin([bell](std::error_code error, detail::once_turn turn) {
            bell->answered(error, std::move(turn));
        });
    });
    return std::nullopt;
}

int once_contender::descriptor() const noexcept {
    return bell_->event;
}

once_contender::news once_contender::take() {
    std::uint64_t rung = 0;
    static_cast<void>(::read(bell_->event, &rung, sizeof rung));
    const std::lock_guard hold(bell_->m);
    return bell_->said;
}

lock_look once_contender::look() const {
    lock_look at{detail::boot_clock::now()};
    at.is_uncertain = session_->state() == session_state::uncertain;
    at.ttl = session_->ttl();
    at.valid_for = session_->valid_for();
    const bool lives = session_->state() != session_state::lost;
    const std::lock_guard hold(bell_->m);
    at.asked_back = bell_->said.loss == errc::evicted;
    at.held = lives && (!bell_->said.loss || at.asked_back);
    return at;
}

int once_contender::live_descriptor() const {
    return lock_access::shell(*session_)->live_descriptor();
}

std::error_code once_contender::finish(detail::once_record::state_t how, std::string payload,
                                       milliseconds within) {
    const auto shell = lock_access::shell(*session_);
    const auto answer = std::make_shared<detail::awaited>();
    shell->on().post(
        [run = run_, shell, answer, how, payload = std::move(payload), within]() mutable {
            (*run)->finish(how, std::move(payload), shell->on().now() + within,
                           [answer](std::error_code error, int) { answer->set(error); });
        });
    const auto patience = within + 2 * shell->request_timeout() + slack;
    if (!answer->wait_until(std::chrono::steady_clock::now() + patience)) {
        answer->set(errc::unknown_outcome);
    }
    return answer->error();
}

void once_contender::withdraw(milliseconds within) {
    const auto shell = lock_access::shell(*session_);
    const auto over = std::make_shared<detail::awaited>();
    shell->on().post([run = run_, bell = bell_, over] {
        if (*run) (*run)->withdraw();
        // Told at once, unless something has to be taken back first.
        over->set(bell->has_answer() ? std::error_code() : errc::busy);
    });
    over->wait_until(std::chrono::steady_clock::now() + within);
    if (over->error() == errc::busy) {
        bell_->wait_for_answer(std::chrono::steady_clock::now() + 2 * shell->request_timeout());
    }
    leave(within);
}

bool once_contender::leave(milliseconds within) {
    const auto shell = lock_access::shell(*session_);
    const auto answer = std::make_shared<detail::awaited>();
    shell->on().post([run = run_, shell, answer, within] {
        run->reset();
        shell->core()->close(
            shell->on().now() + within,
            [answer](std::error_code error, detail::ended_claims) { answer->set(error); });
    });
    if (!answer->wait_until(std::chrono::steady_clock::now() + within)) return false;
    return !answer->error();
}

}  // namespace trinco::program
