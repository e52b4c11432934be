// The thread of one local store: carries requests out in transactions, rings at other processes,
// and looks at the file when somebody rings.
//
//     loop thread                    worker                            other processes
//     submit(job) ---------------->  begin, run every job that waits,
//                                    commit, then finish each
//     <------------- answer posted   ring at those who are concerned  ---> their workers look
//
// Several jobs share a transaction, so that a burst of requests costs one commit. A job that fails
// fails its whole transaction: nothing of it is applied, and each of its jobs is told so.
// Watchers are what a store keeps here for itself: they look at the file when somebody rang, when
// their own transaction changed something, when one of their descriptors is ready and when their
// time has come.
//
// Who opens a store for a moment has it cheaper. A caller who waits for nothing else carries his
// request out himself while the thread sleeps, as waking it takes longer. The thread begins when it
// is needed: by serve(), or by a request that is not carried out so. The socket is made when
// somebody may want to ring at it, because a claim waits or the store has been open for a while.
//
// A process that was stopped within a transaction holds the gate, and this thread waits for it: the
// callers do not, because their calls end by their deadlines, and closing does not either.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/loop.hpp"
#include "store/local/local_file.hpp"

struct pollfd;

namespace trinco::detail {

// What a transaction's jobs want to happen after its commit.
struct local_round {
    std::set<std::string> rings;    // sockets of other processes
    bool ring_peers = false;        // everybody in `peers`
    bool joins_peers = false;       // this process is in there from now on
    bool look = false;              // the watchers of this process
    bool look_early = false;        // those of them who would wake this thread soon
    bool granted_at_once = false;   // to this process, which will ask how that ends
    bool needs_mail = false;        // others will want to ring at this process
    std::set<std::int64_t> claims;  // that were changed, or have somebody else in front of them
    std::set<std::string> ended;    // leases of this process that it ended itself
    std::vector<unique_function<void()>> committed;
};

class local_job {
public:
    // What it needs of the file: nothing, or a transaction that reads, writes, or is durable.
    enum class kind : std::uint8_t { nothing, read, write, durable };

    explicit local_job(kind k) noexcept : kind_(k) {}
    virtual ~local_job() = default;
    [[nodiscard]] kind needs() const noexcept { return kind_; }
    [[nodiscard]] bool writes() const noexcept { return kind_ >= kind::write; }

    // On the worker's thread, inside the transaction if it needs one. May throw.
    virtual void run(local_file& in, local_round& after) = 0;
    // On the worker's thread, after the commit, or with the reason why nothing (or, for
    // unknown_outcome, perhaps nothing) was applied.
    virtual void finish(std::error_code error) noexcept = 0;

    // Any thread; one of the two succeeds, once.
    [[nodiscard]] bool begin() noexcept { return leave_queue(phase::begun); }
    [[nodiscard]] bool drop() noexcept { return leave_queue(phase::dropped); }
    // On the worker's thread, after begin: finishes.
    void end(std::error_code error) noexcept {
        finish(error);
        phase_.store(phase::ended, std::memory_order_release);
    }
    // Any thread.
    [[nodiscard]] bool has_ended() const noexcept {
        return phase_.load(std::memory_order_acquire) == phase::ended;
    }

private:
    enum class phase : std::uint8_t { queued, begun, dropped, ended };
    bool leave_queue(phase to) noexcept {
        auto from = phase::queued;
        return phase_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
    }

    kind kind_;
    std::atomic<phase> phase_{phase::queued};
};

// All on the worker's thread.
class local_watcher {
public:
    virtual ~local_watcher() = default;
    // Answers what is to be done in a transaction, or nothing. May throw sqlite_error; then it is
    // asked again a moment later. `after`: the transaction of this process that is the only reason
    // to look; null: there may be any. A transaction may be open: one that changed nothing but the
    // time of a lease.
    [[nodiscard]] virtual std::shared_ptr<local_job> look(local_file& at,
                                                          const local_round* after) = 0;
    // When to look at the latest.
    [[nodiscard]] virtual boot_clock::time_point next_look() = 0;
    // Whether to look, when there is no reason but what is due by then. A watcher that finds out in
    // a simpler way that nothing has changed puts next_look() off and says no. May throw, as look.
    [[nodiscard]] virtual bool must_look(local_file&, boot_clock::time_point by) {
        return next_look() <= by;
    }
    // Descriptors whose readiness is a reason to look.
    virtual void add_descriptors(std::vector<::pollfd>&) {}
};

class local_worker {
public:
    // Opens the file, on the caller's thread, and starts. Throws open_error. `ahead`: statements
    // (literals) that the thread prepares when it has nothing else to do, beginning while the
    // caller's thread still opens the rest.
    enum class stay : std::uint8_t { long_time, moment };
    local_worker(local_settings settings, const std::string& shown,
                 std::span<const std::string_view> ahead = {}, stay how = stay::long_time);
    // Asks the thread to end after what is queued, and waits a moment for it.
    ~local_worker();
    local_worker(const local_worker&) = delete;
    local_worker& operator=(const local_worker&) = delete;

    // Any thread. With `may_work_here` it may be carried out before this returns, if that need not
    // wait for anybody.
    void submit(std::shared_ptr<local_job> job, bool may_work_here = false);
    void attach(std::weak_ptr<local_watcher> watcher);
    // How long a moment is: whoever holds a lock no longer is not rung at.
    static constexpr auto moment = std::chrono::milliseconds(20);
    // Begins the thread, unless it has begun: whether it has.
    bool serve() noexcept;
    [[nodiscard]] bool serves() const noexcept;
    // lock_store::get_ready: prepares what is to be prepared ahead, unless the thread works. How
    // many statements that was.
    std::size_t get_ready() noexcept;
    // lock_store::before_exit: removes the socket's file.
    void before_exit() noexcept;
    // The name of this process's socket, at which others ring.
    [[nodiscard]] const std::string& socket() const noexcept;
    // The file's path, and the epoch of this life of the machine.
    [[nodiscard]] const std::string& file() const noexcept;
    [[nodiscard]] std::uint64_t epoch() const noexcept;
    // What keeps its thread from its work, by its own words; empty: nothing. Any thread.
    [[nodiscard]] std::string stuck_on() const;
    // The last transaction that failed did so because the file was removed or replaced. Any thread.
    [[nodiscard]] bool is_replaced() const noexcept;
    // local_file::changes_at_open.
    [[nodiscard]] std::int64_t changes_at_open() const noexcept;

private:
    struct core;
    static void begin(const std::shared_ptr<core>& what);
    std::shared_ptr<core> core_;  // also the thread's, which may outlive this object
};

}  // namespace trinco::detail
