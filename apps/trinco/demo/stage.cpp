#include "apps/trinco/demo/stage.hpp"

#include <poll.h>

#include <algorithm>

#include "store/shown_url.hpp"

namespace trinco::program::demo {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

bool stage::locks_on_server() const {
    return detail::scheme_of(locks_url) != "local";
}

bool stage::interrupted() const {
    ::pollfd readable{interruption, POLLIN, 0};
    return ::poll(&readable, 1, 0) > 0;
}

bool stage::over() const {
    return interrupted() || steady::now() >= until;
}

milliseconds stage::moment() const {
    const auto left = std::chrono::ceil<milliseconds>(until - steady::now());
    return std::clamp(left, 0ms, 100ms);
}

bool stage::pause(milliseconds span) const {
    const auto end = std::min(steady::now() + span, until);
    const auto left = std::max(0ms, std::chrono::ceil<milliseconds>(end - steady::now()));
    ::pollfd readable{interruption, POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(left.count()));
    return !over();
}

bool stage::let_read(milliseconds span) const {
    return for_people ? pause(span) : !over();
}

}  // namespace trinco::program::demo
