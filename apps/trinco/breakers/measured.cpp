#include "apps/trinco/breakers/measured.hpp"

#include <chrono>
#include <utility>

#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/store_password.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::boot_clock;

constexpr int most_reads = 50;
constexpr auto longest = 300ms;
constexpr auto patience = 1s;

struct timed {
    std::chrono::nanoseconds took{0};
    std::chrono::nanoseconds script{0};
};

}  // namespace

measured_reads measure_reads(const store& at, const std::string& breaker) {
    measured_reads all;
    if (!is_redis(at.url())) return all;
    const detail::look_request question{breaker, {}};
    const auto end = boot_clock::now() + longest;
    for (int i = 0; i < most_reads && boot_clock::now() < end; ++i) {
        const auto read =
            ask_breakers<timed>(at, patience, [&](detail::breaker_store& on, auto by, auto done) {
                const auto began = boot_clock::now();
                return on.look(question, by,
                               [began, done = std::move(done)](std::error_code error,
                                                               const detail::glance& g) mutable {
                                   done(error, timed{boot_clock::now() - began, g.cost});
                               });
            });
        if (read.error) break;
        all.round_trip.add(read.value.took);
        all.script.add(read.value.script);
    }
    return all;
}

bool measured_reads::is_script_told() const noexcept {
    return script.most().count() > 0;
}

std::string text_of(const measured_reads& all) {
    if (all.round_trip.empty()) return {};
    const std::string script =
        all.is_script_told()
            ? summary_of(all.script) + "\n" + histogram_of(all.script, 4)
            : "not told: the server's clock stands still while a script runs; 'trinco doctor' "
              "measures\n";
    return "\nasking for it, by " + std::to_string(all.round_trip.count()) +
           " reads just now\n  round trip  " + summary_of(all.round_trip) + "\n" +
           histogram_of(all.round_trip, 4) + "  script      " + script;
}

std::string json_text_of(const measured_reads& all) {
    if (all.round_trip.empty()) return "null";
    return json_object()
        .add_raw("round_trip", json_of(all.round_trip).text())
        .add_raw("script", all.is_script_told() ? json_of(all.script).text() : "null")
        .text();
}

}  // namespace trinco::program
