// Errors of Trinco as values.
//
// Every function that can fail at run time either returns a std::error_code of this category (or
// has an overload that does), or throws std::system_error with the same code. A code is one of
// three kinds, and the kind is what a caller acts upon:
//
//   not applied   nothing happened at the store; doing it again is safe
//   unknown       the request may or may not have happened (a lost reply, a deadline that passed);
//                 only reading back tells
//   gone          the lease or the claim that was named does not exist any more, for good
//
// Thread-safety: all functions here are pure.
#pragma once

#include <string>
#include <system_error>

namespace trinco {

enum class errc {
    // not applied
    unavailable = 1,  // the store cannot be reached, or did not take the request
    busy,             // a bound (rows, bytes, pending operations) is reached; later it may fit
    denied,           // the store refuses these credentials or this right
    invalid,          // a name, an option or a request is outside its range
    conflict,         // somebody else holds what was asked for, or a compare failed
    not_supported,    // this store does not offer this operation; another one does
    // unknown
    unknown_outcome,  // sent, but not answered in time: it may have happened
    // gone
    lost,     // the lease or the claim no longer exists
    evicted,  // an operator asked the holder to give the lock back
    // answers of breakers and locks to their callers
    breaker_open,      // the breaker refuses the call; see the refusal for who, why and how long
    not_acquired,      // the lock was not granted within the time given
    canceled,          // the caller's stop_token was triggered
    would_deadlock,    // this thread must not wait for it: this object already holds or awaits it
                       // (not recursive), or the thread is the store's own (an event callback)
    not_held,          // released or used without being held
    limit_mismatch,    // a semaphore of this name exists with another number of permits
    once_interrupted,  // the owner of this key died while it ran; it is never run again by itself
    key_reused,        // this key was used before with other input
    shut_down,         // the object was closed while the operation waited
    forked,            // the object was made in the parent process and used in a child
};

// kinds of a code, as above
enum class error_kind { none, not_applied, unknown, gone };

[[nodiscard]] const std::error_category& error_category() noexcept;
[[nodiscard]] std::error_code make_error_code(errc e) noexcept;

// The kind of any error code; codes of foreign categories count as not applied.
[[nodiscard]] error_kind kind_of(const std::error_code& ec) noexcept;

}  // namespace trinco

template <>
struct std::is_error_code_enum<trinco::errc> : std::true_type {};
