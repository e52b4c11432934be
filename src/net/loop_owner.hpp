// Who runs a loop just now.
#pragma once

namespace trinco::detail {

class event_loop;

// Whether its owner does, by event_loop::run_here on this thread. He waits for an answer and for
// nothing else, so that a call which takes its time puts nothing off.
[[nodiscard]] bool is_run_here(event_loop& on) noexcept;
// Whether it has a thread, which was started.
[[nodiscard]] bool has_thread(event_loop& on) noexcept;

}  // namespace trinco::detail
