// Whether a store of breakers still answers: a command that only waits for changes hears nothing
// from one that is gone, and nothing from one where nothing happens.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "apps/trinco/watching/waiting_room.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class pulse {
public:
    // `door` is rung when an answer has come. Cost: a read of one name every two seconds, and every
    // second while none is answered. The store outlives this; one thread.
    pulse(const store& at, std::shared_ptr<bell> door);
    ~pulse();
    pulse(const pulse&) = delete;
    pulse& operator=(const pulse&) = delete;

    // Asks when it is time to, or at once when `now`, unless an answer is being waited for. Until
    // when the caller may sleep.
    std::chrono::milliseconds ask(bool now);

    // The answer that has come since, once.
    struct beat {
        bool is_well = false;
        std::string why = {};  // not well: one sentence
        std::chrono::system_clock::time_point asked = {};
        bool is_empty = false;  // well, and there is no breaker in it
    };
    [[nodiscard]] std::optional<beat> take();

private:
    struct state;
    const std::shared_ptr<state> state_;
    std::chrono::steady_clock::time_point next_;
};

}  // namespace trinco::program
