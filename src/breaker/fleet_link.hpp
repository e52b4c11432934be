// A breaker's tie to the conversation with the store. Lives until the last function posted to the
// loop for this breaker has run; `owner` is null once the breaker has left.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <thread>

#include "breaker/fleet_sync.hpp"
#include "core/loop.hpp"

namespace trinco::detail {

class engine;

struct fleet_link {
    fleet_link(engine& of, loop& where, fleet_sync& with)
        : owner(&of), on(where), sync(with), thread(std::this_thread::get_id()) {}

    engine* owner;  // the loop's thread
    loop& on;
    fleet_sync& sync;
    const std::thread::id thread;  // the loop's
    const ::pid_t process = ::getpid();
    std::unique_ptr<fleet_sync::membership> member;
    std::map<std::uint64_t, op> pending;  // answers awaited
    std::uint64_t last = 0;

    // Any thread. In a child process nobody runs the loop.
    [[nodiscard]] bool in_a_child() const noexcept { return ::getpid() != process; }
    [[nodiscard]] bool may_wait() const noexcept {
        return thread != std::this_thread::get_id() && !in_a_child();
    }
};

}  // namespace trinco::detail
