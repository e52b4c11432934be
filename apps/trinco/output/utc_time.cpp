#include "apps/trinco/output/utc_time.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace trinco::program {

std::string utc_now() {
    ::timespec t{};
    ::clock_gettime(CLOCK_REALTIME, &t);
    ::tm parts{};
    ::gmtime_r(&t.tv_sec, &parts);
    std::array<char, 32> text{};
    const auto size = std::strftime(text.data(), text.size(), "%FT%T", &parts);
    std::array<char, 8> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%03dZ",
                  static_cast<int>(t.tv_nsec / 1'000'000));
    return std::string(text.data(), size) + fraction.data();
}

}  // namespace trinco::program
