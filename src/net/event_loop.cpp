#include "net/event_loop.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "net/event_loop_impl.hpp"
#include "net/loop_owner.hpp"

namespace trinco::detail {
namespace {

[[noreturn]] void throw_errno(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int opened(int fd, const char* what) {
    if (fd < 0) throw_errno(what);
    return fd;
}

void count_forks() {
    static const int error = ::pthread_atfork(nullptr, nullptr, [] { ++forks_counted; });
    if (error != 0) throw std::bad_alloc();
}

// A timer is set anew when that saves more than so much sleep.
constexpr auto worth_setting = std::chrono::milliseconds(100);
// One that is near is waited for by the wait itself, which saves a system call; that counts whole
// milliseconds, and not while the machine is suspended.
constexpr auto nearest_waited = std::chrono::milliseconds(2);
constexpr auto farthest_waited = std::chrono::milliseconds(10);
// Who runs the loop himself waits for an answer that comes sooner than a thread is woken.
constexpr auto stay_awake = std::chrono::microseconds(200);
// What posts itself again and again keeps descriptors and timers waiting for so many turns.
constexpr int most_unlooked = 4;

}  // namespace

void report_failure() noexcept {
    try {
        throw;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "trinco: a callback of the event loop failed: %s\n", e.what());
    } catch (...) {
        std::fputs("trinco: a callback of the event loop failed\n", stderr);
    }
}

void run_guarded(unique_function<void()>& f) noexcept {
    try {
        f();
    } catch (...) {
        report_failure();
    }
}

// The bell and the timer are told of by each of their edges, and never read.
event_loop::impl::impl()
    : bell(opened(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "trinco: cannot create an eventfd")),
      timer(opened(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC),
                   "trinco: cannot create a timer")),
      watched(opened(::epoll_create1(EPOLL_CLOEXEC), "trinco: cannot create an epoll set")) {
    count_forks();
    for (const auto* own : {&bell, &timer}) {
        ::epoll_event e{};
        e.events = EPOLLIN | EPOLLET;
        e.data.ptr = const_cast<own_descriptor*>(own);
        if (::epoll_ctl(watched.get(), EPOLL_CTL_ADD, own->get(), &e) != 0) {
            throw_errno("trinco: cannot watch a descriptor");
        }
    }
}

void event_loop::impl::ring() noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(bell.get(), &one, sizeof one));
}

void event_loop::impl::post(function f) {
    if (foreign()) return;
    bool wake = false;
    {
        const std::lock_guard hold(m);
        if (!open) return;  // f ends with the call, after the lock
        queue.push_back(std::move(f));
        wake = !std::exchange(scheduled, true);
    }
    if (!wake) return;
    if (own_thread()) {
        drain_next = true;
    } else {
        ring();
    }
}

// One batch a turn: functions posted meanwhile come after whatever else is ready.
void event_loop::impl::drain() {
    {
        const std::lock_guard hold(m);
        batch.swap(queue);
    }
    for (auto& f : batch) {
        if (!open.load(std::memory_order_relaxed)) break;
        auto running = std::move(f);
        run_guarded(running);
    }
    batch.clear();
    const std::lock_guard hold(m);
    drain_next = scheduled = !queue.empty();
}

// Cannot fail: descriptor and time are ours.
void event_loop::impl::arm(boot_clock::time_point when) noexcept {
    using namespace std::chrono;
    armed = when;
    const auto since =
        std::max(when.time_since_epoch(), boot_clock::duration(1));  // 0 would disarm
    const auto whole = duration_cast<seconds>(since);
    ::itimerspec spec{};
    spec.it_value.tv_sec = whole.count();
    spec.it_value.tv_nsec = (since - whole).count();
    static_cast<void>(::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr));
}

// For how long to wait at most. The system's timer stands at the earliest of ours, unless that is
// so near that the wait itself ends with it. Waking up for nothing costs more than setting
// it anew; not so each time one of many that are close to each other is dropped. What is due
// already has its turn without it: in a virtual machine each of its interrupts costs dearly.
int event_loop::impl::follow_timers(int wait_ms) noexcept {
    if (timers.empty()) return wait_ms;
    const auto next = timers.earliest().when;
    if (next >= armed && next - worth_setting <= armed) return wait_ms;
    const auto left = next - boot_clock::now();
    if (left <= boot_clock::duration(0)) {
        timers_next = true;
    } else if (left < nearest_waited || left > farthest_waited) {
        arm(next);
    } else {
        const auto whole =
            static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
        if (wait_ms < 0 || whole < wait_ms) return whole;
    }
    return wait_ms;
}

void event_loop::impl::run_due() {
    const auto now = boot_clock::now();
    const auto first_new = timers.next_order();
    if (armed <= now) armed = boot_clock::time_point::max();
    while (!timers.empty() && open.load(std::memory_order_relaxed)) {
        const auto& next = timers.earliest();
        if (next.when > now || next.order >= first_new) break;
        auto due = timers.take_earliest();
        run_guarded(due);
    }
}

void event_loop::impl::drop(const timer_queue::key& k) {
    if (foreign()) return;
    const auto dropped = timers.take(k);
}

void event_loop::impl::drop_everything() {
    std::vector<function> posted;
    {
        const std::lock_guard hold(m);
        posted.swap(queue);
    }
    posted.clear();
    batch.clear();
    while (!timers.empty()) const auto dropped = timers.take_earliest();
    // One at a time: what a member destroys may be other members.
    while (!members.empty()) members.extract(members.begin()).value()->loop_ended();
}

void event_loop::impl::forget(const watcher& w) noexcept {
    for (int at = told_at; at < told_end; ++at) {
        auto& e = told[static_cast<std::size_t>(at)];
        if (e.data.ptr == &w) e.data.ptr = nullptr;
    }
}

bool event_loop::impl::listen(int wait_ms) {
    told_at = 0;
    told_end = std::max(
        0, ::epoll_wait(watched.get(), told.data(), static_cast<int>(told.size()), wait_ms));
    const bool any = told_end > 0;
    while (told_at < told_end && open.load(std::memory_order_relaxed)) {
        const auto e = told[static_cast<std::size_t>(told_at++)];
        if (e.data.ptr == &bell) {
            drain_next = true;
        } else if (e.data.ptr == &timer) {
            timers_next = true;
        } else if (e.data.ptr != nullptr) {
            static_cast<watcher*>(e.data.ptr)->ready(e.events);
        }
    }
    told_end = 0;
    return any;
}

bool event_loop::impl::turn(int wait_ms) {
    bool any = has_next();
    if (!any || ++unlooked >= most_unlooked) {
        unlooked = 0;
        const int wait = follow_timers(wait_ms);
        const bool sleeps = !has_next();
        any = listen(sleeps ? wait : 0);
        if (sleeps && !any && wait != wait_ms) timers_next = true;
        any = any || has_next();
    }
    if (std::exchange(timers_next, false)) run_due();
    if (std::exchange(drain_next, false)) drain();
    return any;
}

void event_loop::impl::run() noexcept {
    runner.store(std::this_thread::get_id(), std::memory_order_relaxed);
    ::pthread_setname_np(::pthread_self(), "trinco");
    while (open.load(std::memory_order_acquire)) turn(-1);
    drop_everything();
    const std::lock_guard hold(m);
    now_in.store(phase::ended, std::memory_order_release);
    ended.notify_all();
}

event_loop::event_loop() : impl_(std::make_shared<impl>()) {}

event_loop::~event_loop() {
    if (impl_->foreign()) {
        new std::shared_ptr<impl>(std::move(impl_));  // see Fork in the header
        return;
    }
    const bool ended = stop(std::chrono::seconds(5));
    const std::lock_guard hold(impl_->m);
    if (!impl_->thread.joinable()) return;
    if (!ended && !impl_->own_thread()) {
        std::fputs("trinco: a callback still runs; its event loop ends after it\n", stderr);
    }
    impl_->thread.detach();
}

void event_loop::start() {
    if (impl_->foreign()) return;
    const std::lock_guard hold(impl_->m);
    if (!impl_->open || impl_->now_in != impl::phase::idle) return;
    // The signals of the program are for the program's threads.
    ::sigset_t all{};
    ::sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    impl_->now_in = impl::phase::running;
    try {
        impl_->thread = std::thread([own = impl_] { own->run(); });
    } catch (...) {
        impl_->now_in = impl::phase::idle;
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool event_loop::run_here(const std::function<bool()>& done, deadline by) {
    auto& s = *impl_;
    const auto is_ours = [&s] { return s.runs() && s.now_in == impl::phase::idle; };
    if (is_ours()) s.runner.store(std::this_thread::get_id(), std::memory_order_relaxed);
    auto sleep_from = now() + stay_awake;
    while (is_ours() && !done()) {
        if (s.turn(0)) {
            sleep_from = now() + stay_awake;
            continue;
        }
        const auto at = now();
        if (at >= by) break;
        const auto left = std::chrono::floor<std::chrono::milliseconds>(by - at).count();
        if (at < sleep_from || left == 0) {
            std::this_thread::yield();
        } else {
            s.turn(static_cast<int>(std::min<std::int64_t>(left, std::numeric_limits<int>::max())));
        }
    }
    if (is_ours()) s.runner.store({}, std::memory_order_relaxed);
    return done();
}

bool is_run_here(event_loop& on) noexcept {
    const auto& s = *loop_access::inside(on);
    return s.now_in == event_loop::impl::phase::idle && s.own_thread();
}

bool has_thread(event_loop& on) noexcept {
    return loop_access::inside(on)->now_in != event_loop::impl::phase::idle;
}

bool event_loop::stop(std::chrono::milliseconds bound) {
    if (impl_->foreign()) return true;
    std::unique_lock hold(impl_->m);
    impl_->open.store(false, std::memory_order_release);
    if (impl_->now_in == impl::phase::idle) {
        impl_->now_in = impl::phase::ended;
        hold.unlock();
        impl_->drop_everything();
        return true;
    }
    impl_->ring();
    if (impl_->own_thread() && impl_->now_in == impl::phase::running) return false;
    const auto over = [this] { return impl_->now_in == impl::phase::ended; };
    if (!impl_->ended.wait_for(hold, bound, over)) return false;
    auto thread = std::move(impl_->thread);
    hold.unlock();
    if (thread.joinable()) thread.join();
    return true;
}

std::error_code event_loop::check() const noexcept {
    if (impl_->foreign()) return errc::forked;
    if (!impl_->open.load(std::memory_order_acquire)) return errc::shut_down;
    return {};
}

bool event_loop::on_thread() const noexcept {
    return impl_->now_in.load(std::memory_order_acquire) != impl::phase::running ||
           impl_->own_thread();
}

std::uint64_t event_loop::random() {
    auto& s = *impl_;
    if (s.random_left == 0) {
        if (::getentropy(s.random.data(), sizeof s.random) != 0) {
            throw_errno("trinco: the system gives no random numbers");
        }
        s.random_left = s.random.size();
    }
    return s.random[--s.random_left];
}

void event_loop::post(unique_function<void()> f) {
    impl_->post(std::move(f));
}

op event_loop::at(deadline when, unique_function<void()> f) {
    if (impl_->foreign() || !impl_->open) return {};
    // Not before now: a stream of timers for the past must not overtake those that are due.
    const auto k = impl_->timers.put(std::max(when, now()), std::move(f));
    return op([alive = std::weak_ptr<impl>(impl_), k] {
        if (const auto s = alive.lock()) s->drop(k);
    });
}

}  // namespace trinco::detail
