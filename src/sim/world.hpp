// Virtual time for many nodes in one thread: the world in which the real library is simulated.
//
// A world owns the time, one source of randomness and a queue of events; a node is a process on it,
// with a loop of its own that can be paused (SIGSTOP: its events wait, in order) or killed (its
// events never happen). The same seed and the same calls give the same history, event by event.
//
//     sim::world w(seed);
//     sim::node& a = w.add_node("a");
//     a.post([] { ... });
//     w.run_for(10s);
//
// Time begins at one day, so that subtracting a window never goes below zero. Single-threaded.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop.hpp"

namespace trinco::sim {

using detail::boot_clock;
using detail::op;
using detail::unique_function;

class world;

// One process: a loop on the world's time.
class node final : public detail::loop {
public:
    node(world& w, std::string name) : world_(w), name_(std::move(name)) {}

    [[nodiscard]] boot_clock::time_point now() override;
    [[nodiscard]] std::uint64_t random() override;
    void post(unique_function<void()> f) override;
    // As post, but before everything else that is due at that time: of what has piled up while the
    // node was paused, a real loop may look at its sockets before its timers.
    void post_first(unique_function<void()> f);
    [[nodiscard]] op at(detail::deadline when, unique_function<void()> f) override;

    // As at, but nothing ends it except the node's end.
    void run_at(boot_clock::time_point when, unique_function<void()> f);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    // Nothing of this node runs before that time; a longer pause under way stays.
    void pause_until(boot_clock::time_point when) noexcept;
    // Nothing of this node runs any more. Its objects may be destroyed afterwards.
    void kill() noexcept { alive_ = false; }
    [[nodiscard]] bool alive() const noexcept { return alive_; }
    [[nodiscard]] bool paused() const noexcept;

private:
    friend class world;
    world& world_;
    std::string name_;
    boot_clock::time_point resumes_{};
    bool alive_ = true;
};

class world {
public:
    explicit world(std::uint64_t seed);
    world(const world&) = delete;
    world& operator=(const world&) = delete;

    node& add_node(std::string name);
    [[nodiscard]] boot_clock::time_point now() const noexcept { return now_; }

    // Randomness of the scenario itself; nodes draw from the same source.
    [[nodiscard]] std::uint64_t random() { return rng_(); }
    [[nodiscard]] bool chance(double p);                 // true with probability p
    [[nodiscard]] std::uint64_t below(std::uint64_t n);  // 0 ... n-1
    [[nodiscard]] boot_clock::duration between(boot_clock::duration a, boot_clock::duration b);

    // An event of the scenario itself, which no pause delays.
    void schedule(boot_clock::duration after, unique_function<void()> f);

    // Runs all events up to and including that time; afterwards now() is that time.
    void run_until(boot_clock::time_point end);
    void run_for(boot_clock::duration d) { run_until(now_ + d); }
    // Runs events until there is none or the limit of events is reached; true when there is none.
    bool run_all(std::size_t limit);

    // Keeps a clock in step with the world, in nanoseconds, for what reads one instead of asking a
    // loop. It must outlive the world's running.
    void mirror_clock(std::atomic<std::int64_t>& to) noexcept;

    // The history: a line of text that enters a digest, and is kept when keep_history is set.
    void note(std::string_view line);
    void keep_history(bool keep) noexcept { keep_ = keep; }
    [[nodiscard]] const std::vector<std::string>& history() const noexcept { return history_; }
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
    [[nodiscard]] std::uint64_t events_run() const noexcept { return events_run_; }

private:
    friend class node;
    struct item {
        boot_clock::time_point when;
        std::uint64_t order;
        std::uint32_t slot;
    };
    struct slot {
        unique_function<void()> f;
        node* owner = nullptr;
        std::uint64_t order = 0;  // of the item that is in the queue for this slot
    };

    void set_now(boot_clock::time_point t) noexcept;
    std::uint32_t push(boot_clock::time_point when, node* owner, unique_function<void()>&& f,
                       bool first = false);
    [[nodiscard]] bool next_is_soon() const noexcept;
    bool run_one(boot_clock::time_point end);
    void release(std::uint32_t index) noexcept;
    [[nodiscard]] op canceller(std::uint32_t index);

    std::mt19937_64 rng_;
    boot_clock::time_point now_;
    std::uint64_t next_first_ = 1;  // below every ordinary order
    std::uint64_t next_order_ = std::uint64_t{1} << 40;
    std::vector<item> queue_;   // a heap
    std::vector<item> soon_;    // what was due when it came, which is most, in its order
    std::size_t soon_run_ = 0;  // so many of these have been run
    std::vector<slot> slots_;
    std::vector<std::uint32_t> free_;
    std::vector<std::unique_ptr<node>> nodes_;
    std::vector<std::string> history_;
    std::uint64_t digest_ = 0xcbf29ce484222325ULL;
    std::uint64_t events_run_ = 0;
    bool keep_ = false;
    std::atomic<std::int64_t>* mirror_ = nullptr;
    std::shared_ptr<world*> self_;  // lets an op outlive the world
};

}  // namespace trinco::sim
