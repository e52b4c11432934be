// All processes that a demonstration has started, however far down.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>

namespace trinco::program::demo {

// While it lives, processes below this one whose parent has died become children of this one. The
// destructor kills the children and their children until none is left, for at most two seconds.
// Children that were there before (a shell may have become this program) are left alone.
class household {
public:
    household();
    ~household();
    household(const household&) = delete;
    household& operator=(const household&) = delete;

    // Whether none was left.
    bool end(std::chrono::milliseconds limit) noexcept;

private:
    std::set<::pid_t> strangers_;
};

// The parent of a process; -1 when there is no such process.
[[nodiscard]] ::pid_t parent_of(::pid_t pid);

}  // namespace trinco::program::demo
