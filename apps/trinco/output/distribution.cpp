#include "apps/trinco/output/distribution.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "apps/trinco/command_line/duration.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::size_t longest_bar = 40;

// The next of 1, 2, 5, 10, 20, 50 ... us.
nanoseconds next_step(nanoseconds step) {
    auto digit = step;
    while (digit >= 10us) digit /= 10;
    return digit < 2us || digit >= 5us ? step * 2 : step * 5 / 2;
}

double micros(nanoseconds took) {
    return static_cast<double>(took.count()) / 1e3;
}

}  // namespace

void distribution::add(nanoseconds took) {
    took = std::max(took, 0ns);
    sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), took), took);
}

nanoseconds distribution::rank(unsigned percent) const noexcept {
    if (sorted_.empty()) return 0ns;
    return sorted_[(sorted_.size() * percent + 99) / 100 - 1];
}

std::vector<distribution::bucket> distribution::buckets() const {
    std::vector<bucket> all;
    nanoseconds step = 1us;
    for (const nanoseconds took : sorted_) {
        while (took > step) {
            if (!all.empty()) all.push_back({next_step(step), 0});
            step = next_step(step);
        }
        if (all.empty()) all.push_back({step, 0});
        ++all.back().number;
    }
    return all;
}

std::string measured_text(nanoseconds took) {
    if (took >= 10ms) return duration_words(std::chrono::round<std::chrono::milliseconds>(took));
    std::array<char, 32> text{};
    if (took >= 1ms) {
        std::snprintf(text.data(), text.size(), "%.1f ms", micros(took) / 1e3);
    } else {
        std::snprintf(text.data(), text.size(), "%.0f us", micros(took));
    }
    return text.data();
}

std::string summary_of(const distribution& all) {
    return "p50 " + measured_text(all.p50()) + ", p99 " + measured_text(all.p99()) + ", most " +
           measured_text(all.most());
}

std::string histogram_of(const distribution& all, std::size_t indent) {
    const auto buckets = all.buckets();
    std::size_t highest = 1;
    std::size_t widest = 0;
    for (const auto& one : buckets) {
        highest = std::max(highest, one.number);
        widest = std::max(widest, measured_text(one.up_to).size());
    }
    std::string text;
    for (const auto& one : buckets) {
        const std::string limit = measured_text(one.up_to);
        // What is there is seen, however small its part.
        const std::size_t bar = (one.number * longest_bar + highest - 1) / highest;
        text += std::string(indent, ' ') + "up to " + std::string(widest - limit.size(), ' ') +
                limit + "  " + std::string(bar, '#') + (bar > 0 ? " " : "") +
                std::to_string(one.number) + "\n";
    }
    return text;
}

json_object json_of(const distribution& all) {
    json_array buckets;
    for (const auto& one : all.buckets()) {
        buckets.add_raw(
            json_object().add("up_to_us", one.up_to / 1us).add("number", one.number).text());
    }
    json_object o;
    o.add("count", all.count())
        .add("p50_us", micros(all.p50()))
        .add("p99_us", micros(all.p99()))
        .add("most_us", micros(all.most()))
        .add_raw("buckets", buckets.text());
    return o;
}

}  // namespace trinco::program
