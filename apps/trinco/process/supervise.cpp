#include "apps/trinco/process/supervise.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "apps/trinco/process/job_control.hpp"

namespace trinco::program {

namespace {

using detail::boot_clock;
using kind = guardian_event::kind_t;
using namespace std::chrono_literals;

constexpr auto never = boot_clock::time_point::max();
// After `end`: a guardian that has not acted by then is paused itself.
constexpr auto patience_with_guardian = 20ms;
// After the command: what it leaves behind usually ends with it, and is not worth a line.
constexpr auto patience_with_leftovers = 1s;

// What is said anew of the same lease differs by the time between two readings of the clock, and
// is never later than the truth. The guardian need not be woken for that.
constexpr auto jitter = 1ms;

bool is_about(boot_clock::time_point a, boot_clock::time_point b) {
    return a == b || (a != never && b != never && std::chrono::abs(a - b) < jitter);
}

bool ends_programs(int number) {
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

class supervisor {
public:
    supervisor(guardian& over, const command_spec& what, signal_desk& desk, const supervision& how)
        : over_(over), what_(what), desk_(desk), how_(how), job_(over, desk, how) {}

    command_end run();

private:
    void wait();
    void drain_wake();
    void on_event(const guardian_event& event);
    void on_ended(const guardian_event& event);
    void on_time();
    void ask();
    [[nodiscard]] int poll_timeout() const;

    guardian& over_;
    const command_spec& what_;
    signal_desk& desk_;
    const supervision& how_;
    job_control job_;
    command_end end_{};
    deadlines until_{};
    int wake_ = -1;
    bool is_done_ = false;
    bool has_ended_ = false;
    bool was_killed_ = false;
    std::uint32_t leftovers_ = 0;
    boot_clock::time_point ask_at_ = never;
    boot_clock::time_point say_at_ = never;
    boot_clock::time_point take_over_at_ = never;
};

command_end supervisor::run() {
    wake_ = how_.wake;
    command_spec first = what_;
    if (how_.until) first.until = how_.until();
    until_ = first.until;
    if (how_.until && how_.every > 0ms) {
        ask_at_ = boot_clock::now() + (how_.soon > 0ms ? how_.soon : how_.every);
    }
    if (const std::error_code error = over_.run(first)) {
        if (error.value() == EINVAL) {
            return {.how = command_end::how_t::not_started, .number = error.value()};
        }
        // A guardian that is gone says so by its next event.
    }
    ask();
    if (how_.meanwhile) how_.meanwhile();
    while (!is_done_) wait();
    if (!has_ended_) job_.on_gone();
    return end_;
}

int supervisor::poll_timeout() const {
    const auto next = std::min({ask_at_, say_at_, take_over_at_});
    if (next == never) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - boot_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void supervisor::wait() {
    std::array<::pollfd, 3> watched{};
    watched[0] = {.fd = over_.descriptor(), .events = POLLIN, .revents = 0};
    watched[1] = {.fd = desk_.descriptor(), .events = POLLIN, .revents = 0};
    watched[2] = {.fd = wake_, .events = POLLIN, .revents = 0};
    if (::poll(watched.data(), watched.size(), poll_timeout()) < 0) return;
    bool something_came = false;
    if (watched[2].revents != 0) {
        drain_wake();
        something_came = true;
    }
    // What the command did comes before what somebody wants from it: a key that stopped both.
    if (watched[0].revents != 0) {
        while (const auto event = over_.next()) {
            on_event(*event);
            something_came = true;
        }
    }
    if (watched[1].revents != 0) {
        while (const auto number = desk_.next()) {
            if (ends_programs(*number)) {
                if (!has_ended_) end_.passed_on = true;
                // Also while what the command left behind is still being ended.
                if (*number != SIGHUP) end_.asked_to_end = true;
            }
            job_.on_signal(*number);
        }
        something_came = true;
    }
    if (something_came && !is_done_) ask();
    on_time();
}

void supervisor::drain_wake() {
    std::uint64_t ignored = 0;
    const ::ssize_t size = ::read(wake_, &ignored, sizeof ignored);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) wake_ = -1;
}

void supervisor::on_event(const guardian_event& event) {
    if (how_.on_event) how_.on_event(event);
    switch (event.kind) {
        case kind::started: job_.on_started(event.pid); break;
        case kind::refused:
            end_.how = command_end::how_t::not_started;
            end_.number = event.number;
            is_done_ = true;
            break;
        case kind::stopped: job_.on_stopped(event.number); break;
        case kind::continued: job_.on_continued(); break;
        case kind::acted:
            if (!has_ended_ && what_.at_act != on_deadline::ignore) end_.acted = true;
            break;
        case kind::killed:
            was_killed_ = true;
            if (!has_ended_) end_.acted = true;
            break;
        case kind::ended: on_ended(event); break;
        case kind::alone: is_done_ = true; break;
        case kind::gone:
            if (!has_ended_) {
                // By our own hand, the guardian having slept through the deadline?
                end_.how =
                    was_killed_ ? command_end::how_t::signaled : command_end::how_t::guardian_lost;
                end_.number = SIGKILL;
            }
            is_done_ = true;
            break;
    }
}

void supervisor::on_ended(const guardian_event& event) {
    has_ended_ = true;
    end_.how = event.exited ? command_end::how_t::exited : command_end::how_t::signaled;
    end_.number = event.number;
    job_.on_ended(end_);
    leftovers_ = event.alive;
    if (leftovers_ > 0) say_at_ = boot_clock::now() + patience_with_leftovers;
}

void supervisor::ask() {
    if (how_.until) {
        const deadlines wanted = how_.until();
        if (!is_about(wanted.act, until_.act) || !is_about(wanted.end, until_.end)) {
            over_.move(wanted);
            until_ = wanted;
        }
    }
    const bool has_end = until_.end != never && !was_killed_;
    take_over_at_ = has_end ? until_.end + patience_with_guardian : never;
}

void supervisor::on_time() {
    if (is_done_) return;
    const auto now = boot_clock::now();
    if (now >= ask_at_) {
        ask();
        ask_at_ = now + how_.every;
    }
    if (now >= say_at_) {
        say("the command has ended; waiting for " + std::to_string(leftovers_) +
            (leftovers_ == 1 ? " process" : " processes") + " that it left behind");
        say_at_ = never;
    }
    if (now >= take_over_at_) {
        was_killed_ = true;
        if (!has_ended_) end_.acted = true;
        over_.take_over();
        take_over_at_ = never;
    }
}

}  // namespace

command_end supervise(guardian& over, const command_spec& what, signal_desk& desk,
                      const supervision& how) {
    return supervisor(over, what, desk, how).run();
}

}  // namespace trinco::program
