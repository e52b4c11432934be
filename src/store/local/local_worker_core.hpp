// The inside of local_worker, for its own files alone: what its thread does and keeps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "store/local/local_mail.hpp"
#include "store/local/local_worker.hpp"

namespace trinco::detail {

struct local_worker::core {
    core(local_settings settings, const std::string& shown,
         std::span<const std::string_view> statements, stay how);

    static constexpr auto retry_after_trouble = std::chrono::milliseconds(200);
    // A third of the usual TTL: a look that would wake a waiting process before its next renewal
    // is part of this one, and costs little then.
    static constexpr auto looked_at_early = std::chrono::seconds(5);

    using jobs = std::vector<std::shared_ptr<local_job>>;

    // The rest of the constructor, while the thread runs already.
    void make_mail();
    void need_mail();
    void clear_away();
    void run() noexcept;
    [[nodiscard]] bool wait_for_mail() noexcept;
    bool prepare_one() noexcept;
    // False at the end.
    bool turn();
    bool has_work(bool& writes);
    [[nodiscard]] bool work(bool writes, bool may_wait);
    [[nodiscard]] bool work_here() noexcept;
    jobs take(bool may_write);
    std::error_code carry_out(const jobs& batch, local_round& after);
    void apply(const jobs& batch, local_round& after, bool& committing);
    void forget_gone();
    void find_peers(local_round& after);
    void ring(const local_round& after) noexcept;
    // Of local_worker_looks.cpp.
    void look(const local_round* after) noexcept;
    void look_early(const jobs& batch, local_round& after);
    [[nodiscard]] bool must_look(boot_clock::time_point by) noexcept;
    void listen(bool may_wait);
    void have_trouble() noexcept;
    [[nodiscard]] std::vector<std::shared_ptr<local_watcher>> watching();

    void say_goodbye() noexcept;
    void poke() const noexcept;
    bool work_comes_soon();
    bool may_sleep();

    // Held by who works with what follows: the worker's thread, unless it sleeps.
    std::mutex at_work;
    std::optional<local_file> file;
    const owned_descriptor event;
    std::optional<local_mail> mail;  // made under m, too
    const std::string socket;
    const std::string path;
    std::span<const std::string_view> ahead;
    const std::uint64_t epoch;
    const std::int64_t changes_at_open;
    const bool brief;  // opened for a moment, with all that follows from it
    const boot_clock::time_point born = boot_clock::now();
    std::vector<std::string> gone;  // peers that do not answer any more
    bool among_peers = false;
    // Until then nothing is a reason to look: what was found could not be changed.
    boot_clock::time_point trouble_until = boot_clock::time_point::min();
    boot_clock::time_point listened = boot_clock::time_point::min();
    boot_clock::time_point idle_since = boot_clock::time_point::min();
    bool came_soon = false;  // the last job, after this thread had run out of jobs
    bool complained = false;
    std::atomic<bool> replaced = false;
    std::atomic<bool> leaving = false;  // written under m: the process ends, and makes no socket

    std::mutex m;
    std::condition_variable made;
    bool is_made = false;  // the mail, if there could be one
    std::condition_variable over;
    std::deque<std::shared_ptr<local_job>> queue;
    std::atomic<bool> asked = false;  // since the queue was looked at
    bool asleep = brief;              // the thread; must be woken, or begun
    bool begun = false;
    std::string stuck_on;  // what keeps the thread from its work; empty: nothing
    std::vector<std::weak_ptr<local_watcher>> watchers;
    bool ending = false;
    bool ended = false;
};

}  // namespace trinco::detail
