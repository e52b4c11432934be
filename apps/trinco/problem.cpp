#include "apps/trinco/problem.hpp"

#include <unistd.h>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/visible.hpp"
#include "trinco/error.hpp"

namespace trinco::program {

int exit_code_of(const std::error_code& error) noexcept {
    if (error.category() != trinco::error_category()) {
        const bool denied =
            error == std::errc::permission_denied || error == std::errc::operation_not_permitted;
        return denied ? exit_denied : exit_unavailable;
    }
    switch (static_cast<errc>(error.value())) {
        case errc::denied: return exit_denied;
        case errc::invalid:
        case errc::not_supported:
        case errc::limit_mismatch: return exit_usage;
        case errc::conflict:
        case errc::not_acquired:
        case errc::breaker_open: return exit_not_acquired;
        case errc::lost:
        case errc::evicted: return exit_lost;
        default: return exit_unavailable;
    }
}

int complain(const problem& what) {
    say(what.sentence);
    return what.code;
}

void say(std::string_view sentence) {
    // In one write, so that lines of many processes in one log do not mix. Where standard error
    // cannot be written there is nobody to tell.
    static_cast<void>(write_all(STDERR_FILENO, "trinco: " + visible(sentence) + "\n"));
}

}  // namespace trinco::program
