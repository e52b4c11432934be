#include "net/event_loop.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "net/event_loop_impl.hpp"

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

event_loop::impl::impl() : timer(context, open_timer()) {}

void event_loop::impl::schedule_drain() {
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
    {
        const std::lock_guard hold(m);
        scheduled = !queue.empty();
        if (!scheduled) return;
    }
    schedule_drain();
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

void event_loop::impl::wait_for_timer() {
    timer.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                         if (error) return;
                         std::uint64_t fired = 0;
                         // Nothing to read is a timer that was set anew since it fired.
                         const bool due = ::read(timer.native_handle(), &fired, sizeof fired) > 0;
                         wait_for_timer();
                         if (due) run_due();
                     });
}

void event_loop::impl::run_due() {
    const auto now = boot_clock::now();
    const auto first_new = next_order;
    armed = boot_clock::time_point::min();  // set once below, not by each timer set meanwhile
    while (!timers.empty() && open.load(std::memory_order_relaxed)) {
        const key next = timers.begin()->first;
        if (next.when > now || next.order >= first_new) break;
        auto due = timers.extract(timers.begin());
        run_guarded(due.mapped());
    }
    armed = boot_clock::time_point::max();
    if (!timers.empty()) arm(timers.begin()->first.when);
}

void event_loop::impl::drop(const key& k) {
    if (foreign()) return;
    // Destroyed after it has left the map: its destructor may set or end other timers.
    const auto dropped = timers.extract(k);
    // Waking up for nothing costs more than setting the timer anew; not so each time one of many
    // that are close to each other is dropped.
    if (k.when != armed || timers.empty()) return;
    const auto next = timers.begin()->first.when;
    if (next > k.when + std::chrono::milliseconds(100)) arm(next);
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

void event_loop::impl::run() noexcept {
    runner.store(std::this_thread::get_id(), std::memory_order_relaxed);
    ::pthread_setname_np(::pthread_self(), "trinco");
    while (open.load(std::memory_order_acquire)) {
        try {
            context.run();
        } catch (const std::exception& e) {  // of Asio itself: no memory for a handler
            std::fprintf(stderr, "trinco: the event loop failed and goes on: %s\n", e.what());
        }
    }
    drop_everything();
    const std::lock_guard hold(m);
    now_in.store(phase::ended, std::memory_order_release);
    ended.notify_all();
}

event_loop::event_loop() : impl_(std::make_shared<impl>()) {
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
    if (k.when < impl_->armed) impl_->arm(k.when);
    return op([alive = std::weak_ptr<impl>(impl_), k] {
        if (const auto s = alive.lock()) s->drop(k);
    });
}

}  // namespace trinco::detail
