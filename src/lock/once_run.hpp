// One caller's part in a key that is to be done once, as a state machine on the loop. What
// trinco::once and the program's `once` are wrappers of.
//
//   begin()  reads the record. Settled: that is the answer. Otherwise it takes the lock of the key:
//            at once if it is free; else it waits with all others who only want to know, shared
//            where the store offers that, and reads again when the owner has left. Who has to run
//            it holds the lock exclusively and has written `running`, durably, under it. A write
//            whose outcome is unknown is read back, and sent again as it was.
//   settle() what its caller found out by asking, in place of the answer `ask`.
//   finish() writes how it ended, by a compare with what was written before, and gives the lock
//            back. It is repeated until its deadline, also when the session was lost in
//            between: the record alone decides whether it counts.
//
// `running` and `undone` are kept until somebody changes them; `keep` is for what has ended.
//
// Destroying it gives the lock up. A `running` that was written, or may have been, stays: who comes
// next finds it interrupted; withdraw() first is better. The loop's thread only; completions run
// later, and not after destruction.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/lock/once.hpp"
#include "lock/lock_claim.hpp"
#include "lock/session_core.hpp"

namespace trinco::detail {

struct once_settings {
    std::string key;
    std::string label;  // of the session
    once_wishes wishes;
    std::chrono::seconds keep{86'400};
    std::optional<deadline> by;  // for waiting while somebody else runs it; not_acquired after it
    std::function<std::chrono::milliseconds()> wall_clock;
};

struct once_turn {
    // begin: run it, `record` is what was written. answer, tell, ask, reused: `record` was found.
    once_step step = once_step::wait;
    once_record record;
};

class once_run {
public:
    once_run(std::shared_ptr<session_core> session, once_settings settings);
    once_run(const once_run&) = delete;
    once_run& operator=(const once_run&) = delete;

    // Errors as of lock_claim; invalid when something else is kept under the key.
    void begin(completion<once_turn> done);
    // Ends begin and settle, whose completion is told canceled: at once, or, when `running` is on
    // its way to the store, as soon as its outcome is known and it was taken back.
    void withdraw();
    // After `ask`. nullopt: it was not done, run it again under the same run_id (the turn says
    // begin). Otherwise this result is recorded, and the turn answers with it.
    void settle(std::optional<std::string> result, completion<once_turn> done);
    // After `begin`: done, failed, or undone (nothing was begun). conflict: the record was changed
    // by somebody else, so that it does not count.
    void finish(once_record::state_t how, std::string payload, deadline by, completion<int> done);
    // Told when the lock is lost while it runs.
    void when_lost(lock_claim::told f) { lock_.when_lost(std::move(f)); }

private:
    enum class round : std::uint8_t { first, waited, queued };

    void read(unique_function<void()> then);
    void take(const std::optional<record>& found);
    void look();
    void acquire();
    void acquired(std::error_code error);
    void judge(bool owner_gone);
    void run_as(once_record next);
    void begun();
    void take_back(std::error_code why);
    void write(once_record next, bool guarded, unique_function<void(std::error_code)> then);
    void write_running(once_record next);
    void write_end(once_record next, deadline by);
    void wrote_end(const once_record& next, deadline by, std::error_code error);
    void retry(unique_function<void()> f);
    void read_back(const once_record& next, std::uint64_t before);
    // nullopt: the session's end was told by asking, and whoever heard of it destroyed this.
    [[nodiscard]] std::optional<bool> session_is_lost();
    void succeed(once_turn t);
    void fail(std::error_code error);
    void end(std::error_code error);
    [[nodiscard]] std::string new_run_id();

    const std::shared_ptr<session_core> session_;
    const once_settings settings_;
    lock_claim lock_;
    round round_ = round::first;
    bool exclusive_ = false;  // the lock held
    bool writing_ = false;    // `running` is on its way to the store
    bool withdrawn_ = false;
    std::optional<once_record> known_;
    std::uint64_t revision_ = must_be_absent;  // of what is known
    std::uint32_t attempts_ = 0;
    completion<once_turn> done_;
    completion<int> finished_;
    op request_;
    op retry_;
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail
