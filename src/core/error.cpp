#include "trinco/error.hpp"

namespace trinco {
namespace {

const char* sentence(errc e) noexcept {
    switch (e) {
        case errc::unavailable: return "the store cannot be reached; nothing was changed";
        case errc::busy:
            return "the store has no room for it: its disk is full, or a limit of items is reached";
        case errc::denied: return "the store refuses these credentials or this right";
        case errc::invalid: return "a name, an option or a request is outside its range";
        case errc::conflict: return "somebody else holds it, or it changed meanwhile";
        case errc::not_supported: return "this store does not offer this operation";
        case errc::unknown_outcome: return "no answer in time; the request may have happened";
        case errc::lost: return "the lease or claim no longer exists";
        case errc::evicted: return "an operator asked for the lock back";
        case errc::breaker_open: return "the circuit breaker refuses the call";
        case errc::not_acquired: return "the lock was not granted within the time given";
        case errc::canceled: return "the wait was canceled by its caller";
        case errc::would_deadlock:
            return "this thread must not wait for it: this object already holds or awaits it, or "
                   "the thread is the store's own";
        case errc::not_held: return "it is not held by this object";
        case errc::limit_mismatch: return "a semaphore of this name has another number of permits";
        case errc::once_interrupted: return "the owner of this key died while it ran";
        case errc::key_reused: return "this key was used before with other input";
        case errc::shut_down: return "the object was closed while the operation waited";
        case errc::forked: return "the object was made before fork and cannot be used in the child";
    }
    return "an unknown error of trinco";
}

class category final : public std::error_category {
public:
    const char* name() const noexcept override { return "trinco"; }
    std::string message(int value) const override { return sentence(static_cast<errc>(value)); }
};

}  // namespace

const std::error_category& error_category() noexcept {
    static const category instance;
    return instance;
}

std::error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), error_category()};
}

error_kind kind_of(const std::error_code& ec) noexcept {
    if (!ec) return error_kind::none;
    if (ec.category() != error_category()) return error_kind::not_applied;
    switch (static_cast<errc>(ec.value())) {
        case errc::unknown_outcome: return error_kind::unknown;
        case errc::lost:
        case errc::evicted: return error_kind::gone;
        default: return error_kind::not_applied;
    }
}

}  // namespace trinco
