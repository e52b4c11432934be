// The record of a key that is to be done once, and what a caller makes of it. Pure.
//
//   none ──begin──> running ──> done (with its result)
//                      │    └─> failed (with its error)
//                      └ its owner is gone: interrupted, which nobody but a person, or who asked
//                        for it, turns into something else: done, failed, or undone, which the
//                        next caller runs again under the same run id
//
// As text: lines of "name value", an empty line, and then the result or the error, any bytes. A
// reader skips names that it does not know.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trinco::detail {

inline constexpr std::size_t max_once_key = 180;
inline constexpr std::size_t max_once_result = 64 * 1'024;
inline constexpr std::size_t max_fingerprint = 128;

struct once_record {
    enum class state_t : std::uint8_t { running, done, failed, undone };
    state_t state = state_t::running;
    std::string owner;   // the label of the session that ran it last
    std::string run_id;  // the same through all attempts but those after a failure
    std::uint32_t attempt = 1;
    std::chrono::milliseconds since{0};  // of the wall clock's epoch; for people alone
    std::string fingerprint;             // of the input; may be empty
    std::string payload;                 // the result or the error
    bool operator==(const once_record&) const = default;
};

[[nodiscard]] std::string_view name_of(once_record::state_t s) noexcept;
[[nodiscard]] std::string encode(const once_record& r);
// Nothing when it is not such a record.
[[nodiscard]] std::optional<once_record> decode_once(std::string_view text);

// Nothing when it is good, else a sentence.
[[nodiscard]] std::optional<std::string> check_once_key(std::string_view key);
[[nodiscard]] std::optional<std::string> check_fingerprint(std::string_view fingerprint);

// The lock that who runs it holds, and the key of the record, which is never beneath that name.
[[nodiscard]] std::string once_lock_of(std::string_view key);
[[nodiscard]] std::string once_key_of(std::string_view key);
inline constexpr std::string_view once_keys = "once/";  // what all such keys begin with

struct once_wishes {
    std::string fingerprint{};
    bool retry_on_failure = false;
    enum class interrupted_t : std::uint8_t { tell, rerun, ask } on_interrupted{};
};

enum class once_step : std::uint8_t {
    begin,        // nobody has: run it under a new run_id
    begin_again,  // run it under the record's run_id, as the next attempt
    answer,       // it is done, or failed for good
    wait,         // somebody runs it
    tell,         // interrupted
    ask,          // interrupted: the caller knows whom to ask
    reused        // the key was used with other input
};

// `owner_gone`: the caller holds the lock of the key, or has just seen it free.
[[nodiscard]] once_step decide(const once_record* known, const once_wishes& wishes,
                               bool owner_gone) noexcept;

}  // namespace trinco::detail
