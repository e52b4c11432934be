#include "trinco/semaphore.hpp"

#include <string>

#include "lock/make_shell.hpp"

namespace trinco {
namespace {

constexpr std::uint32_t most_permits = 1'000'000;

std::uint32_t checked(std::string_view name, std::uint32_t n) {
    if (n >= 1 && n <= most_permits) return n;
    throw lock_error(errc::invalid, "semaphore '" + std::string(name) + "' has " +
                                        std::to_string(n) + " permits; 1 to 1000000 are allowed");
}

}  // namespace

semaphore::semaphore(session& on, std::string_view name, std::uint32_t n, std::string_view info)
    : lock_handle(detail::make_shell(
          on, "semaphore", {{std::string(name), detail::claim_kind::permit, checked(name, n)}},
          info)),
      permits_(n) {}

void semaphore::release() noexcept {
    std::error_code ignored;
    release(ignored);
}

}  // namespace trinco
