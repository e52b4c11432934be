#include "apps/trinco/lock/opening_time.hpp"

#include <algorithm>

#include "store/lock_store.hpp"
#include "store/open.hpp"
#include "trinco/session.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

}  // namespace

milliseconds opening_time(const std::optional<detail::deadline>& by, bool is_first) {
    const auto usual = session_options().open_timeout;
    if (!by) return usual;
    const auto left = std::chrono::ceil<milliseconds>(*by - detail::boot_clock::now());
    return std::clamp(left, is_first ? milliseconds(1s) : 0ms, usual);
}

std::function<bool()> nobody_listens_at(const store& at) {
    return [locks = detail::store_access::state(at)->locks()] { return locks->is_refused(); };
}

}  // namespace trinco::program
