// The guardian: a process between the program and the user's command, so that the command never
// outlives what it runs under.
//
//     shell - trinco (wrapper: threads, store, terminal) - guardian (one thread) - command
//
// Why          The wrapper renews a lease; when it is paused or killed nobody does, and the command
//              must end all the same. The guardian needs nothing but a clock for that.
// Made         by fork before the wrapper has a thread or a store. It is a child subreaper in a
//              process group of its own in the same session, so that keys of a terminal do not
//              reach it and every orphan of the command becomes its child.
// Command      started by the guardian as the leader of a new process group, with the wrapper's
//              signal mask and dispositions as they were when the program began, PDEATHSIG KILL,
//              stdin, stdout and stderr as they are, and no shell in between.
// Deadlines    two instants of CLOCK_BOOTTIME, moved by the wrapper. At `act` it does what
//              on_deadline says (and continues what is stopped, which could not obey otherwise); at
//              `end` it kills the group and every descendant that it finds, also those that left
//              the group, until none is left. Without deadlines it never acts.
// Wrapper gone kills at once, as at `end`.
// Guardian gone  The wrapper sees it and kills the group and the descendants itself, being a
//              subreaper, too; PDEATHSIG has killed the command before. A guardian that is paused
//              when `end` comes is killed by supervise(), for the same effect.
// Not ended by KILL  is a process in a system call that hangs, or of another user (sudo). It is
//              named on standard error after two seconds, tried again, and waited for: until it is
//              gone the descriptor below stays open.
// Not covered  Wrapper and guardian killed or paused in the same instant. There the lock's token
//              decides.
//              Whoever stops the process that waits to become the command, in the first 20 ms,
//              holds the guardian too, until it is continued or killed. The deadlines hold as long
//              as the wrapper lives.
//              Without /proc only the group is killed; who left it is waited for.
// Descriptor   `keep_open` (the session's liveness) is inherited by the command and held by the
//              guardian until the last descendant is gone.
// Several      A guardian that was made for several commands waits for the next one when one is
//              over: by then the program has threads, and could fork no other.
//
// Threads: one. Errors are values.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/problem.hpp"
#include "core/loop.hpp"

namespace trinco::program {

enum class on_deadline : std::uint8_t { term, kill, ignore };

struct deadlines {
    detail::boot_clock::time_point act = detail::boot_clock::time_point::max();
    detail::boot_clock::time_point end = detail::boot_clock::time_point::max();
    bool operator==(const deadlines&) const = default;
};

struct command_spec {
    std::vector<std::string> words;  // words[0] is looked for in PATH unless it has a slash
    std::vector<std::pair<std::string, std::string>> environment;  // added to the wrapper's
    int keep_open = -1;
    deadlines until{};
    on_deadline at_act = on_deadline::term;
};

struct guardian_event {
    enum class kind_t : std::uint8_t {
        started,  // pid
        refused,  // the command was not started: errno in `number`; ETIME: `end` had passed
        stopped,  // by signal `number`: TSTP, TTIN, TTOU, STOP
        continued,
        acted,   // `act` has come, on_deadline was done
        killed,  // `end` has come
        ended,   // the command: `exited` ? exit code : signal in `number`; descendants may live
        alone,   // the last descendant is gone; after `ended`
        gone     // the guardian itself is; the wrapper has killed what it found
    };
    kind_t kind = kind_t::gone;
    bool exited = false;
    int number = 0;
    ::pid_t pid = 0;          // of started: the command, which leads its process group
    std::uint32_t alive = 0;  // of ended: descendants that still live
};

class guardian {
public:
    enum class commands : std::uint8_t { one, several };
    // Forks; in the guardian this never returns. The problem: the system has no process left.
    [[nodiscard]] static std::variant<guardian, problem> start(commands of = commands::one);
    guardian(guardian&&) noexcept;
    guardian& operator=(guardian&&) noexcept;
    // Ends it, and with it the command if that still runs; waits for both.
    ~guardian();

    // The answer is an event: started or refused. Once; of several: again after refused or alone.
    [[nodiscard]] std::error_code run(const command_spec& what);
    // Sooner or later than before; ignored once `end` has come.
    void move(const deadlines& to);
    // To the command's process group; once the command has ended, to all that it left behind, for
    // nothing else remains that it could be meant for (INT and QUIT with TERM, as shells start
    // what runs in the background of a script deaf to them).
    void signal(int number);
    // For a guardian that is paused itself and has let `end` pass: kills it and the command. next()
    // then says `gone`.
    void take_over();

    // Readable when next() has something to say.
    [[nodiscard]] int descriptor() const noexcept;
    [[nodiscard]] std::optional<guardian_event> next();

private:
    struct impl;
    explicit guardian(std::unique_ptr<impl> what) noexcept;
    std::unique_ptr<impl> impl_;
};

}  // namespace trinco::program
