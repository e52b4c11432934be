// Those who wait at a local store of locks: for their turn, for the end of a claim, for a change of
// holder. The functions stay on the loop's thread (lock_listeners); the worker's thread looks at
// the file for them (local_lock_watch).
//
// A waiter is rung at when it is its turn. It does not rely on that alone: it watches the process
// of the entry just ahead (by a pidfd in the same PID namespace), has a timer at that session's
// end, and reads again every second. Where no pidfd tells (another namespace, or a descendant keeps
// the session alive) who stands behind a holder looks at the session's byte every 50 ms, and sooner
// when the holder's process has just ended. Who stands further back reads every thirty seconds,
// looks at the byte of the entry just ahead, where no pidfd tells, every six, and sees whether that
// session was renewed before it would have run out; all on the way of its own renewals, because
// there are many of those, and before it is their turn somebody rings. Whoever finds a session dead
// or run out removes it, which gives the turn on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "store/local/local_calls.hpp"
#include "store/local/local_queues.hpp"

namespace trinco::detail {

// On the loop's thread. What is called more than once is held while it runs, because it may end
// itself.
struct lock_listener {
    completion<grant> granted;
    std::shared_ptr<unique_function<void(place)>> moved;
    unique_function<void(std::error_code)> gone;
    std::shared_ptr<unique_function<void(std::optional<entry>)>> seen;
};
using lock_listeners = std::map<std::uint64_t, lock_listener>;

class local_lock_watch final : public local_watcher {
public:
    local_lock_watch(std::shared_ptr<local_outlet> outlet, std::weak_ptr<lock_listeners> to,
                     std::shared_ptr<local_lives> lives, local_process self);

    enum class kind : std::uint8_t { turn, turn_and_place, end, holder };
    // The loop's thread. `what`: a lease, or the name to observe. Whether the worker looks soon by
    // itself; otherwise it is to be told.
    bool add(std::uint64_t listener, kind k, std::string_view what, claim_id id);
    void remove(std::uint64_t listener);
    void remove_all();

    [[nodiscard]] std::shared_ptr<local_job> look(local_file& at,
                                                  const local_round* after) override;
    [[nodiscard]] boot_clock::time_point next_look() override;
    [[nodiscard]] bool must_look(local_file& at, boot_clock::time_point by) override;
    void add_descriptors(std::vector<::pollfd>& to) override;

private:
    struct item {
        std::uint64_t listener;
        kind what;
        std::string name;
        claim_id id;
        std::int64_t row = 0;                                       // of the claim, when known
        std::optional<std::uint32_t> place;                         // as told
        std::optional<std::pair<std::int64_t, std::string>> shown;  // row and info of the holder
        bool told = false;                                          // anything
    };
    static constexpr std::chrono::milliseconds look_at_byte_every{50};
    // A session whose end is waited for.
    struct watched {
        owned_descriptor process;
        bool by_byte = false;  // no process tells of it: its byte is looked at again and again
        bool holds = false;    // what we wait for: all the more often
        boot_clock::duration pause = look_at_byte_every;
    };
    class reap_job;

    void look_at(local_queues& q, item& one);
    void look_at_turn(local_queues& q, item& one, const local_queues::claim_row& c);
    void look_at_holder(local_queues& q, item& one);
    void look_ahead(const std::vector<local_queues::party>& parties);
    void read_again_after(boot_clock::duration d);
    void look_at_byte_again(watched& one);
    [[nodiscard]] bool all_live();
    [[nodiscard]] bool all_go_on(local_file& at);
    void expect_end(std::int64_t session, std::int64_t ends);
    void watch(const local_queues::party& p);
    [[nodiscard]] bool is_ours(const local_queues::party& p) const;
    [[nodiscard]] bool is_told_of(const local_queues::party& p) const;
    void look_again(std::int64_t at, std::int64_t now);
    [[nodiscard]] std::vector<std::shared_ptr<item>> items(const local_round* after);
    void expect_listener();
    template <class F>
    void post(std::uint64_t listener, F call);
    void finish(std::uint64_t listener, std::error_code error, grant g);
    void tell_end(const item& one, std::error_code why);

    std::shared_ptr<local_outlet> outlet_;
    std::weak_ptr<lock_listeners> to_;
    std::shared_ptr<local_lives> lives_;
    const local_process self_;

    std::mutex m_;
    std::map<std::uint64_t, std::shared_ptr<item>> items_;
    // A claim was granted, and its holder will ask how it ends: that look is put off for a moment,
    // in which who locks for a moment has unlocked.
    bool expects_ = false;

    // The worker's thread.
    boot_clock::time_point next_ = boot_clock::time_point::min();  // when the file is read
    // When bytes are looked at, and ends of sessions: mostly they show that nothing has changed.
    boot_clock::time_point next_bytes_ = boot_clock::time_point::max();
    boot_clock::time_point next_ends_ = boot_clock::time_point::max();
    std::set<std::int64_t> ending_;  // the sessions whose ends those are
    std::map<std::int64_t, watched> watched_;
    std::set<std::int64_t> concerned_;  // sessions that this look has met
    std::set<std::int64_t> dead_;
    bool over_ = false;  // a session has run out
    boot_clock::time_point drop_after_;
    bool drop_due_ = false;
    std::int64_t now_ = 0;
};

}  // namespace trinco::detail
