// A process of the demonstration: this same program, started with a hidden command, or another one.
//
//     auto started = cast::start({.words = {"demo-service", "--shop", shop.string()}});
//     if (auto* why = std::get_if<problem>(&started)) return *why;
//     auto& service = std::get<cast>(started);
//     ... poll service.descriptor() ...
//     while (auto line = service.next_line()) ...
//
// What it runs   /proc/self/exe with the words, so that the demonstration needs no path and works
//                from any place where the program lies; with `program`, that file.
// Ends           with the thread that started it (PDEATHSIG KILL): start it from one that stays,
//                normally the main thread. The destructor kills it and its process group and reaps
//                it. What it has started itself it must tie to its own life in the same way.
// Signals        It leads a session of its own, so keys of a terminal reach the demonstration only,
//                and what stands still below it (SIGSTOP) is woken by the kernel when its parent
//                dies: an orphaned process group gets HUP and CONT. Mask and dispositions are the
//                default ones.
// Environment    the demonstration's without its TRINCO_ and ETCD_ variables, and what
//                `environment` adds.
// Descriptors    stdin, stdout and stderr, no others.
//
// Threads: one thread an object. Errors are values.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/problem.hpp"

namespace trinco::program::demo {

struct role {
    std::vector<std::string> words;  // what follows the program's name
    std::vector<std::pair<std::string, std::string>> environment = {};
    std::filesystem::path errors = {};   // its stderr is appended to this file; empty: thrown away
    std::filesystem::path program = {};  // empty: this one
};

class cast {
public:
    [[nodiscard]] static std::variant<cast, problem> start(const role& as);
    cast(cast&& other) noexcept;
    cast& operator=(cast&& other) noexcept;
    ~cast();

    [[nodiscard]] ::pid_t pid() const noexcept { return pid_; }

    // Readable when next_line may have something to say.
    [[nodiscard]] int descriptor() const noexcept { return out_; }
    // The next line of its stdout, without waiting; none when no whole line has come.
    [[nodiscard]] std::optional<std::string> next_line();
    // Waits for one, at most so long.
    [[nodiscard]] std::optional<std::string> next_line(std::chrono::milliseconds limit);
    // Its stdout is closed, by it and all who inherited it, and every line was taken.
    [[nodiscard]] bool silent() const noexcept;

    // A line to its stdin. False when it is gone.
    bool say(std::string_view line);
    void signal(int number) const;

    // How it ended, as shells tell it: its exit code, or 128 + the signal. None: it runs.
    [[nodiscard]] std::optional<int> ended();
    [[nodiscard]] std::optional<int> ended(std::chrono::milliseconds limit);

private:
    cast(::pid_t pid, int in, int out) noexcept : pid_(pid), in_(in), out_(out) {}
    void fill();
    void end() noexcept;

    ::pid_t pid_ = -1;
    int in_ = -1;
    int out_ = -1;
    bool closed_ = false;  // out_ has ended
    std::string text_;     // read and not taken
    std::optional<int> code_;
};

}  // namespace trinco::program::demo
