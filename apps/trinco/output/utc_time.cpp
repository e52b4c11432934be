#include "apps/trinco/output/utc_time.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace trinco::program {

std::string utc_text(std::chrono::system_clock::time_point when) {
    using namespace std::chrono;
    const auto passed = floor<milliseconds>(when.time_since_epoch());
    const auto whole = floor<seconds>(passed);
    const std::time_t t = whole.count();
    ::tm parts{};
    ::gmtime_r(&t, &parts);
    std::array<char, 32> text{};
    const auto size = std::strftime(text.data(), text.size(), "%FT%T", &parts);
    std::array<char, 8> fraction{};
    std::snprintf(fraction.data(), fraction.size(), ".%03dZ",
                  static_cast<int>((passed - whole).count()));
    return std::string(text.data(), size) + fraction.data();
}

std::string utc_now() {
    return utc_text(std::chrono::system_clock::now());
}

}  // namespace trinco::program
