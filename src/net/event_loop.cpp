#include "net/event_loop.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
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

int open_timer() {
    const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0) throw_errno("trinco: cannot create a timer");
    return fd;
}

int open_bell() {
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) throw_errno("trinco: cannot create an eventfd");
    return fd;
}

// A timer is set anew when that saves more than so much sleep.
constexpr auto worth_setting = std::chrono::milliseconds(100);
// Who runs the loop himself waits for an answer that comes sooner than a thread is woken.
constexpr auto stay_awake = std::chrono::microseconds(200);

}  // namespace

void run_guarded(unique_function<void()>& f) noexcept {
    try {
        f();
    } catch (const std::exception& e) {
        std::fprintf(stderr, "trinco: a callback of the event loop failed: %s\n", e.what());
    } catch (...) {
        std::fputs("trinco: a callback of the event loop failed\n", stderr);
    }
}

event_loop::impl::impl() : bell(context, open_bell()), timer(context, open_timer()) {}

// Asio wakes its thread while it holds a mutex, at which a thread that wakes on another core stops
// again at once. Hence the bell.
void event_loop::impl::schedule_drain() {
    if (!own_thread()) {
        const std::uint64_t one = 1;
        static_cast<void>(::write(bell.native_handle(), &one, sizeof one));
        return;
    }
    try {
        asio::post(context, [this] { drain(); });
    } catch (...) {
        const std::lock_guard hold(m);
        scheduled = false;  // the next post tries again
        throw;
    }
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
    if (wake) schedule_drain();
}

void event_loop::impl::wait_for_bell() {
    bell.async_read_some(asio::buffer(&rung, sizeof rung),
                         [this](const boost::system::error_code& error, std::size_t) {
                             bell_waits = false;
                             if (error) return;
                             wait_for_bell();
                             drain();
                         });
    bell_waits = true;
}

// One batch a turn: functions posted meanwhile come after whatever else is ready.
void event_loop::impl::drain() {
    {
        const std::lock_guard hold(m);
        batch.swap(queue);
    }
    in_turn = true;
    for (auto& f : batch) {
        if (!open.load(std::memory_order_relaxed)) break;
        auto running = std::move(f);
        run_guarded(running);
    }
    batch.clear();
    in_turn = false;
    bool again = false;
    {
        const std::lock_guard hold(m);
        again = scheduled = !queue.empty();
    }
    if (again) schedule_drain();
    follow_timers();
}

void event_loop::impl::arm(boot_clock::time_point when) {
    using namespace std::chrono;
    armed = when;
    const auto since =
        std::max(when.time_since_epoch(), boot_clock::duration(1));  // 0 would disarm
    const auto whole = duration_cast<seconds>(since);
    ::itimerspec spec{};
    spec.it_value.tv_sec = whole.count();
    spec.it_value.tv_nsec = (since - whole).count();
    if (::timerfd_settime(timer.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr) != 0) {
        throw_errno("trinco: cannot set a timer");
    }
}

// The system's timer stands at the earliest of ours. Waking up for nothing costs more than setting
// it anew; not so each time one of many that are close to each other is dropped. What is due
// already has its turn without it: in a virtual machine each of its interrupts costs dearly.
void event_loop::impl::follow_timers() {
    if (in_turn || timers.empty()) return;
    const auto next = timers.begin()->first.when;
    if (next >= armed && next - worth_setting <= armed) return;
    if (next > boot_clock::now()) return arm(next);
    asio::post(context, [this] { run_due(); });
    armed = next;
}

void event_loop::impl::wait_for_timer() {
    // One that was set anew since it fired has nothing to read.
    timer.async_read_some(asio::buffer(&fired, sizeof fired),
                          [this](const boost::system::error_code& error, std::size_t) {
                              timer_waits = false;
                              if (error) return;
                              wait_for_timer();
                              run_due();
                          });
    timer_waits = true;
}

void event_loop::impl::run_due() {
    const auto now = boot_clock::now();
    const auto first_new = next_order;
    armed = boot_clock::time_point::max();
    in_turn = true;
    while (!timers.empty() && open.load(std::memory_order_relaxed)) {
        const key next = timers.begin()->first;
        if (next.when > now || next.order >= first_new) break;
        auto due = timers.extract(timers.begin());
        run_guarded(due.mapped());
    }
    in_turn = false;
    follow_timers();
}

void event_loop::impl::drop(const key& k) {
    if (foreign()) return;
    // Destroyed after it has left the map: its destructor may set or end other timers.
    const auto dropped = timers.extract(k);
    follow_timers();
}

void event_loop::impl::drop_everything() {
    std::vector<function> posted;
    {
        const std::lock_guard hold(m);
        posted.swap(queue);
    }
    posted.clear();
    batch.clear();
    { const auto set = std::exchange(timers, {}); }
    // One at a time: what a member destroys may be other members.
    while (!members.empty()) members.extract(members.begin()).value()->loop_ended();
}

// What an error of Asio's own has left undone: hearing the bell, seeing the timer, and what they
// had told.
void event_loop::impl::go_on() {
    if (!bell_waits) wait_for_bell();
    if (!timer_waits) wait_for_timer();
    armed = boot_clock::time_point::max();
    drain();  // and sets the timer
}

void event_loop::impl::turn(const std::function<void()>& some) noexcept {
    try {
        if (std::exchange(failed, false)) go_on();
        some();
    } catch (const std::exception& e) {  // of Asio itself: no memory for a handler
        failed = true;
        std::fprintf(stderr, "trinco: the event loop failed and goes on: %s\n", e.what());
    }
}

void event_loop::impl::run() noexcept {
    runner.store(std::this_thread::get_id(), std::memory_order_relaxed);
    ::pthread_setname_np(::pthread_self(), "trinco");
    while (open.load(std::memory_order_acquire)) turn([this] { context.run(); });
    drop_everything();
    const std::lock_guard hold(m);
    now_in.store(phase::ended, std::memory_order_release);
    ended.notify_all();
}

event_loop::event_loop() : impl_(std::make_shared<impl>()) {
    impl_->wait_for_bell();
    impl_->wait_for_timer();
}

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
    for (bool comes = true; comes && is_ours() && !done();) {
        s.turn([&] {
            if (s.context.poll_one() > 0) {
                sleep_from = now() + stay_awake;
            } else if (const auto at = now(); at >= by) {
                comes = false;
            } else if (at < sleep_from) {
                std::this_thread::yield();
            } else {
                s.context.run_one_for(by - at);
            }
        });
    }
    if (is_ours()) s.runner.store({}, std::memory_order_relaxed);
    return done();
}

bool is_run_here(event_loop& on) noexcept {
    const auto& s = *asio_access::inside(on);
    return s.now_in == event_loop::impl::phase::idle && s.own_thread();
}

bool has_thread(event_loop& on) noexcept {
    return asio_access::inside(on)->now_in != event_loop::impl::phase::idle;
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
    impl_->context.stop();
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
    const impl::key k{std::max(when, now()), impl_->next_order++};
    impl_->timers.emplace(k, std::move(f));
    impl_->follow_timers();
    return op([alive = std::weak_ptr<impl>(impl_), k] {
        if (const auto s = alive.lock()) s->drop(k);
    });
}

}  // namespace trinco::detail
