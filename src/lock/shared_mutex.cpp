#include "trinco/shared_mutex.hpp"

#include "lock/make_shell.hpp"

namespace trinco {

shared_mutex::shared_mutex(session& on, std::string_view name, std::string_view info)
    : lock_handle(detail::make_shell(
          on, "shared_mutex", {{std::string(name), detail::claim_kind::exclusive, 0}}, info)) {}

void shared_mutex::unlock() noexcept {
    std::error_code ignored;
    unlock(ignored);
}

void shared_mutex::unlock_shared() noexcept {
    std::error_code ignored;
    unlock_shared(ignored);
}

}  // namespace trinco
