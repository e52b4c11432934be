// Times that were measured, and how they are spread.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "apps/trinco/output/json.hpp"

namespace trinco::program {

class distribution {
public:
    void add(std::chrono::nanoseconds took);
    [[nodiscard]] bool empty() const noexcept { return sorted_.empty(); }
    [[nodiscard]] std::size_t count() const noexcept { return sorted_.size(); }

    // By the nearest rank: of few times the highest of them is the 99th percentile. 0 when empty.
    [[nodiscard]] std::chrono::nanoseconds p50() const noexcept { return rank(50); }
    [[nodiscard]] std::chrono::nanoseconds p99() const noexcept { return rank(99); }
    [[nodiscard]] std::chrono::nanoseconds most() const noexcept { return rank(100); }

    // In steps of 1, 2, 5, 10 ... from 1 us on: from the first that holds something to the last.
    struct bucket {
        std::chrono::nanoseconds up_to;  // inclusive
        std::size_t number = 0;
    };
    [[nodiscard]] std::vector<bucket> buckets() const;

private:
    [[nodiscard]] std::chrono::nanoseconds rank(unsigned percent) const noexcept;

    std::vector<std::chrono::nanoseconds> sorted_;
};

// "48 us", "1.3 ms", "12 ms", "2.1 s".
[[nodiscard]] std::string measured_text(std::chrono::nanoseconds took);

// "p50 0.21 ms, p99 0.9 ms, most 1.1 ms"
[[nodiscard]] std::string summary_of(const distribution& all);

// A line a bucket, each with its line break: "    up to 200 us  ########## 12".
[[nodiscard]] std::string histogram_of(const distribution& all, std::size_t indent);

// {"count", "p50_us", "p99_us", "most_us", "buckets": [{"up_to_us", "number"}]}
[[nodiscard]] json_object json_of(const distribution& all);

}  // namespace trinco::program
