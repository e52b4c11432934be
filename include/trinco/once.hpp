// Something that is to be done once, whoever is asked to do it and however often: a charge, a mail,
// a ticket.
//
//     auto paid = trinco::once(session, "invoice/42", [&](const trinco::once_run& run) {
//         return provider.charge(invoice, run.run_id);    // its idempotency key
//     }, {.keep = std::chrono::days(60)});                // a day unless it is said: see Kept
//     // paid.value is what the provider answered, here or elsewhere, now or an hour ago
//
// A lock alone does not do this: who takes it a minute after the first has finished charges again,
// and so does who takes it after the first has died between the charge and its record. once keeps
// a record at the store, which outlives everybody:
//
//   none -> running -> done (with the result)
//                   -> failed (with the error)
//
// f begins only when `running` is acknowledged, durably, and while this caller holds the lock of
// the key. Everybody else waits for as long as its owner lives, and is then given what was
// recorded.
//
// Interrupted  The owner died, or lost its session, while it ran. Whether the charge went through
//              nobody here knows, so that it is never run again by itself: every caller gets
//              errc::once_interrupted, with who it was, since when, and the run's id. Three ways
//              out, of which one is chosen beforehand:
//                tell       (default) a person finds out, and says so: trinco records resolve
//                reconcile  a function that asks the provider by the run's id, whether it is done;
//                           if it is not, f runs again under the same id
//                rerun      f runs again under the same id, at once: at least once instead of at
//                           most once. Right where f is harmless to repeat, or whoever it talks to
//                           knows the id as an idempotency key
// Failed       What f throws is recorded as the failure, and is what later callers are given,
//              unless they ask for another attempt (retry_on_failure), which has a new run id.
// Fingerprint  A hash of the input: the same key with another one is errc::key_reused, a mistake of
//              the caller that would otherwise be given the result of something else.
// Kept         for `keep` after it has ended, a day unless it is said. Afterwards the key is as
//              new, and who asks again runs f again: let it be the longest time after which anybody
//              may still try again, and a margin. It is the store's clock that counts, and `keep`
//              is never shorter; on etcd it is somewhat longer, as of guarded data
//              (trinco/guarded_write.hpp). Consul has no clock for this: there the wall clocks of
//              the machines count, of the one that ran f and of the one that asks, and a record is
//              forgotten only after `keep` and a margin, the smaller of `keep` and one hour. Keep
//              the clocks together (NTP): a machine whose clock is ahead by more than the margin
//              forgets earlier than `keep`, and runs f again.
//              One that runs, or was interrupted, is kept until it has ended or is resolved.
// A result     is at most 64 KiB. What is longer was done all the same, and is recorded as a
//              failure that says so.
// Lost         A session that is lost while f runs requests run.lost; others are then told
//              interrupted. If f finishes nevertheless and nobody has run it anew, its result
//              counts.
//
// Threads      once blocks, and runs f on the calling thread. Any number of threads may call it;
//              from a callback of the session it holds up the others. The same key inside f waits
//              for itself, for ever.
// Keys         1-180 of [A-Za-z0-9._/-], as names of locks but without a leading '/'. The lock of a
//              key is ".trinco/once/KEY". On Consul no segment is '.', and the last is not ".lock".
// Errors       lock_error, and a twin: once_interrupted, key_reused, not_acquired (options.wait),
//              canceled (options.stop), invalid, would_deadlock (on the store's own thread), lost,
//              shut_down, forked, denied, unavailable. When f ran (result.ran of the twin): its
//              record could not be written within options.record_timeout (unknown_outcome), or
//              somebody else ran it, or resolved it, meanwhile (conflict); the twin returns f's
//              result all the same. When it did not, the same may be said of what reconcile found.
// Cost         of a key that is settled: one read. Of one that runs: a lock, a read and two durable
//              writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

#include "trinco/error.hpp"
#include "trinco/session.hpp"

namespace trinco {

// What f is told about its run.
struct once_run {
    std::string key;
    std::string run_id;         // 32 hex digits; the same again after an interruption
    std::uint32_t attempt = 1;  // from 1
    std::stop_token lost;       // the lock is lost
};

// What asking somebody about an interrupted run brought.
struct once_found {
    enum class what_t : std::uint8_t { done, not_done, unknown };
    what_t what = what_t::unknown;
    std::string result{};  // of done
};

struct once_options {
    // What to do when the owner is gone. With a reconcile function it is asked first, and this is
    // what its `unknown` means.
    enum class interrupted_t : std::uint8_t { tell, rerun };
    interrupted_t on_interrupted = interrupted_t::tell;
    // Called with the run's id, by one caller at a time, under the lock of the key. May throw,
    // which is `unknown`. `done` records the result for everybody.
    std::function<once_found(const std::string& run_id)> reconcile{};
    bool retry_on_failure = false;
    // At most 128 bytes, one line; empty is one, too.
    std::string fingerprint{};
    // 1 s ... 366 days; 0: for ever. Default a day.
    std::chrono::seconds keep{24 * 3'600};
    // The longest to wait while somebody else runs it. Without one: as long as it takes.
    std::optional<std::chrono::milliseconds> wait{};
    // The longest that writing the record may take after f, while the store is away. Default 30 s.
    std::chrono::milliseconds record_timeout{30'000};
    std::stop_token stop{};  // ends waiting; not f
};

struct once_result {
    bool failed = false;  // value is the error
    std::string value{};  // the result, or what the failure said
    bool ran = false;     // here and now; otherwise it was recorded before
    std::string run_id{};
    std::uint32_t attempt = 0;
    std::exception_ptr raised{};  // what f threw, when it ran here
};

// Thrown by once for once_interrupted: who it was and since when, on the owner's wall clock.
class once_interrupted_error : public lock_error {
public:
    once_interrupted_error(std::string sentence, std::string owner, std::string run_id,
                           std::chrono::system_clock::time_point since);
    [[nodiscard]] const std::string& owner() const noexcept { return owner_; }
    [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }
    [[nodiscard]] std::chrono::system_clock::time_point since() const noexcept { return since_; }

private:
    std::string owner_;
    std::string run_id_;
    std::chrono::system_clock::time_point since_;
};

using once_function = std::function<std::string(const once_run&)>;

[[nodiscard]] once_result once(session& on, std::string_view key, const once_function& f,
                               const once_options& options = {});
// The twin without exceptions of ours. `f` may throw all the same, which is a failure.
[[nodiscard]] once_result once(session& on, std::string_view key, const once_function& f,
                               const once_options& options, std::error_code& error);

}  // namespace trinco
