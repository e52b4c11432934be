// Rows of a comparison with targets, and what they are made of.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace trinco::bench {

using clock_type = std::chrono::steady_clock;

class figures {
public:
    void most(const char* what, double figure, const char* unit, double target) {
        const bool met = figure <= target;
        all_met_ = all_met_ && met;
        std::printf("%-58s %9.3f %-8s target <= %g  %s\n", what, figure, unit, target,
                    met ? "met" : "MISSED");
        std::fflush(stdout);
    }
    static void beside(const char* what, double figure, const char* unit) {
        std::printf("%-58s %9.3f %s\n", what, figure, unit);
        std::fflush(stdout);
    }
    [[nodiscard]] bool all_met() const noexcept { return all_met_; }

private:
    bool all_met_ = true;
};

[[nodiscard]] inline double microseconds_since(clock_type::time_point begin) {
    return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

[[nodiscard]] inline double share(std::vector<double> of, double part) {
    const auto at =
        std::min(of.size() - 1, static_cast<std::size_t>(part * static_cast<double>(of.size())));
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(at), of.end());
    return of[at];
}

[[nodiscard]] inline double median(std::vector<double> of) {
    return share(std::move(of), 0.5);
}

}  // namespace trinco::bench
