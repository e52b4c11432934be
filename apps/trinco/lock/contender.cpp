#include "apps/trinco/lock/contender.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "apps/trinco/lock/opening_time.hpp"
#include "apps/trinco/lock/session_words.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "store/open.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::lock_access;

constexpr std::size_t rows_shown = 200;
constexpr auto listing_limit = 300ms;

}  // namespace

// Where threads of the library leave word. Shared with them: what they say may come late.
struct contender::bell {
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
    void answered(std::error_code error) {
        const std::lock_guard hold(m);
        said.answer = error;
        ring();
    }
    void lost(std::error_code why) {
        const std::lock_guard hold(m);
        said.loss = why;
        ring();
    }

    [[nodiscard]] bool has_answer() {
        const std::lock_guard hold(m);
        return said.answer.has_value();
    }

    const int event;
    std::mutex m;
    contender_news said;
};

contender::contender(const store& at, const lock_plan& plan)
    : at_(at), on_(detail::store_access::state(at)->on()), plan_(plan) {}

contender::~contender() {
    if (lock_) lock_->retire();
}

std::optional<problem> contender::enter(const std::optional<detail::deadline>& by, bool is_first) {
    if (lock_) lock_->retire();
    lock_ = nullptr;
    session_.reset();
    const auto& offers = detail::store_access::state(at_)->locks()->traits();
    const auto kind = plan_.what.kind;
    const bool offered = kind == detail::claim_kind::shared   ? offers.shared
                         : kind == detail::claim_kind::permit ? offers.permits
                                                              : true;
    if (!offered) {
        const bool shared = kind == detail::claim_kind::shared;
        return problem{exit_usage,
                       "the store " + std::string(at_.url()) + " has no " +
                           (shared ? "shared locks; leave out --shared" : "permits; leave out -n")};
    }
    session_options options;
    options.ttl = plan_.ttl;
    options.label = plan_.label;
    options.open_timeout = opening_time(by, is_first);
    detail::lock_request how;
    how.by = by;
    how.only_if_free = plan_.wait == 0ms;
    try {
        const auto shell = lock_access::make_shell(at_, options);
        bell_ = std::make_shared<bell>();
        const bool bare = plan_.value.has_value();
        auto lock = std::make_shared<detail::lock_shell>(shell, std::vector{plan_.what},
                                                         plan_.value.value_or(""), "lock", bare);
        lock->on_loss([bell = bell_](std::error_code why) { bell->lost(why); });
        // In one go, as far as the store can do that: coming back here in between would take longer
        // than entering itself.
        detail::session_shell::first_claim first;
        first.parts = {plan_.what};
        first.info = plan_.value.value_or("");
        first.bare = bare;
        first.only_if_free = how.only_if_free;
        first.enter = [lock, bell = bell_, how]() mutable {
            lock->async_lock_quick([bell](std::error_code e) { bell->answered(e); },
                                   std::move(how));
        };
        const auto opening = shell->begin_to_open(std::move(first));
        const bool is_open = here_until([&] { return opening->is_set(); },
                                        options.open_timeout + options.request_timeout);
        if (!is_open) on_.start();
        const auto in_vain = how.only_if_free ? nobody_listens_at(at_) : nullptr;
        if (const auto error = shell->opened(opening, in_vain))
            throw lock_access::no_session(at_, *shell, error);
        session_ = lock_access::wrap(shell);
        lock_ = std::move(lock);
        // What is granted at once is known by now, and mostly that is so.
        if (!here_until([this] { return bell_->has_answer(); }, 0ms)) on_.start();
        if (!std::exchange(has_entered_, true)) say_longer_ttl(at_, *session_, plan_.ttl);
    } catch (const std::system_error& e) {
        return problem{exit_code_of(e.code()), without_name(e.what())};
    }
    return std::nullopt;
}

bool contender::serve() {
    try {
        on_.start();
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

void contender::get_ready() const noexcept {
    if (on_.on_thread()) detail::store_access::state(at_)->locks()->get_ready();
}

bool contender::here_until(const std::function<bool()>& done,
                           std::chrono::milliseconds within) const {
    return on_.run_here(done, on_.now() + within);
}

int contender::descriptor() const noexcept {
    return bell_->event;
}

contender_news contender::news() {
    std::uint64_t rung = 0;
    static_cast<void>(::read(bell_->event, &rung, sizeof rung));
    const std::lock_guard hold(bell_->m);
    return bell_->said;
}

lock_look contender::look() const {
    lock_look at{detail::boot_clock::now()};
    at.is_uncertain = session_->state() == session_state::uncertain;
    at.ttl = session_->ttl();
    at.held = lock_->held();
    at.valid_for = lock_->valid_for();
    const std::lock_guard hold(bell_->m);
    at.asked_back = bell_->said.loss == errc::evicted;
    return at;
}

int contender::live_descriptor() const {
    return lock_access::shell(*session_)->live_descriptor();
}

std::optional<std::vector<detail::entry>> contender::queue(std::error_code* why) const {
    const auto& name = plan_.what.name;
    auto page = ask_locks<detail::entries>(
        at_, listing_limit, [&](detail::lock_store& locks, detail::deadline by, auto done) {
            return locks.list(name, "", rows_shown, by, std::move(done));
        });
    if (why != nullptr) *why = page.error;
    if (page.error) return std::nullopt;
    auto rows = std::move(page.value.rows);
    std::erase_if(rows, [&](const detail::entry& e) { return e.name != name; });
    return rows;
}

bool contender::is_own(const detail::entry& e) const {
    return std::string_view(e.handle).starts_with(lease() + "/");
}

bool contender::leave(std::chrono::milliseconds within) {
    if (!lock_) return true;
    // The end of the session ends what is on it, in one step. It is no loss that one would be told.
    lock_->on_loss(nullptr);
    const auto shell = lock_access::shell(*session_);
    struct farewell {
        detail::awaited told;
        detail::ended_claims claims;  // written before `told` is set
    };
    const auto answer = std::make_shared<farewell>();
    const auto by = std::chrono::steady_clock::now() + within;
    shell->on().post([shell, answer, within] {
        shell->core()->close(shell->on().now() + within,
                             [answer](std::error_code error, detail::ended_claims claims) {
                                 answer->claims = claims;
                                 answer->told.set(error);
                             });
    });
    static_cast<void>(here_until([&] { return answer->told.is_set(); }, within));
    if (!answer->told.wait_until(by) || answer->told.error()) return false;
    was_gone_ = answer->claims == 0;
    return true;
}

}  // namespace trinco::program
