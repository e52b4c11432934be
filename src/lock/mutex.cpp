#include "trinco/mutex.hpp"

#include "lock/make_shell.hpp"

namespace trinco {

mutex::mutex(session& on, std::string_view name, std::string_view info)
    : lock_handle(detail::make_shell(
          on, "mutex", {{std::string(name), detail::claim_kind::exclusive, 0}}, info)) {}

void mutex::unlock() noexcept {
    std::error_code ignored;
    unlock(ignored);
}

}  // namespace trinco
