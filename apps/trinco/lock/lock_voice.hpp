// What is said of one lock, beginning with what it is called.
#pragma once

#include <string>

#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/problem.hpp"
#include "core/quoted.hpp"

namespace trinco::program {

class lock_voice {
public:
    lock_voice(const lock_plan& plan, bool verbose) : plan_(plan), verbose_(verbose) {}

    // "the lock "nightly"", or "the lead of "scheduler"" of who stands in an election.
    [[nodiscard]] std::string name() const {
        return (plan_.value ? "the lead of " : "the lock ") + detail::quoted(plan_.what.name, 256);
    }
    [[nodiscard]] bool is_verbose() const noexcept { return verbose_; }
    // With --verbose alone.
    void tell(const std::string& sentence) const {
        if (verbose_) say(name() + ": " + sentence);
    }

private:
    const lock_plan& plan_;
    const bool verbose_;
};

}  // namespace trinco::program
