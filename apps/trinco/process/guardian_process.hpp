// The guardian's own side: what runs in its process. See guardian.hpp for what it promises.
#pragma once

#include <sys/types.h>

#include <deque>
#include <string>

#include "apps/trinco/process/channel.hpp"
#include "apps/trinco/process/command_start.hpp"
#include "apps/trinco/process/guardian.hpp"

namespace trinco::program {

class guardian_process {
public:
    // Right after the fork. `channel` is the guardian's end, `wrapper` the parent.
    guardian_process(int channel, ::pid_t wrapper, guardian::commands of);
    // Until everything is done (of several commands: until the wrapper wants no more), or the
    // wrapper is gone and everything has ended.
    [[noreturn]] void run();

private:
    void wait();
    void read_requests();
    void move(const deadlines& to);
    void stand_by();
    [[nodiscard]] bool is_told(new_command& what, std::string& text,
                               detail::boot_clock::time_point by);
    void take(const request& what, int keep_open);
    void start(const request& what, int keep_open);
    void supervise(const starting& begun);
    void read_answer();
    void refuse(int error);
    void finish(const guardian_event& last);
    void be_as_new();
    void on_signals();
    void reap();
    void on_child(::pid_t process, int status);
    void on_orphan(::pid_t process, int status) const;
    void on_timer();
    void set_timer();
    void act();
    void end();
    void end_command();
    void pass_on(int number);
    void continue_wrapper() const;
    void report(const guardian_event& event);
    void flush();
    [[nodiscard]] bool is_wrapper_gone() const;
    [[noreturn]] void leave();

    const int channel_;
    const ::pid_t wrapper_;
    const ::pid_t wrapper_group_;
    const bool is_for_several_;
    int signals_ = -1;  // a signalfd
    int timer_ = -1;    // at the next of the deadlines
    int answer_ = -1;   // of the command's exec, until it is known
    int keep_open_ = -1;
    std::string text_;  // of the command, as far as it has come
    ::pid_t command_ = 0;
    bool has_started_ = false;  // and `started` was reported
    bool has_ended_ = false;    // and was reaped
    bool has_acted_ = false;
    bool is_done_ = false;       // nothing runs, and nothing will
    bool we_continued_ = false;  // the command, since it stopped
    on_deadline at_act_ = on_deadline::term;
    deadlines until_;
    // The wrapper does not read, being paused, and the socket is full. Few, as a command that goes
    // on when the wrapper is paused continues that, too.
    std::deque<guardian_event> unsent_;
};

}  // namespace trinco::program
