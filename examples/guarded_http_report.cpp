#include "guarded_http_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace guarded_http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t reasons_max = 20;

double ms(nanoseconds d) {
    return std::chrono::duration<double, std::milli>(d).count();
}
double seconds(nanoseconds d) {
    return std::chrono::duration<double>(d).count();
}
unsigned long long number(std::uint64_t n) {
    return n;
}

std::string text(nanoseconds d) {
    std::array<char, 32> out{};
    if (d < 1us) {
        std::snprintf(out.data(), out.size(), "%lld ns", static_cast<long long>(d.count()));
    } else if (d < 1ms) {
        std::snprintf(out.data(), out.size(), "%.1f us", ms(d) * 1e3);
    } else if (d < 1s) {
        std::snprintf(out.data(), out.size(), "%.1f ms", ms(d));
    } else if (d % 1s == 0ns) {
        std::snprintf(out.data(), out.size(), "%lld s", static_cast<long long>(d / 1s));
    } else {
        std::snprintf(out.data(), out.size(), "%.2f s", seconds(d));
    }
    return out.data();
}

std::string escaped(std::string_view s) {
    std::string out;
    for (const char c : s) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
    return out;
}

std::string name(trinco::breaker_state state) {
    return std::string(trinco::text_of(state));
}

std::string times(std::uint64_t n) {
    return n == 1 ? "once" : std::to_string(n) + " times";
}

}  // namespace

void durations::add(nanoseconds took) {
    const auto ns = std::max<double>(1, static_cast<double>(took.count()));
    const auto at = static_cast<std::size_t>(std::log2(ns) * steps_an_octave);
    ++buckets_[std::min(at, buckets_.size() - 1)];
    ++size_;
    max_ = std::max(max_, took);
}

nanoseconds durations::quantile(double q) const {
    const auto rank = static_cast<std::uint64_t>(q * static_cast<double>(size_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
        seen += buckets_[i];
        if (seen <= rank) continue;
        const double middle = std::exp2((static_cast<double>(i) + 0.5) / steps_an_octave);
        return std::min(max_, nanoseconds(static_cast<std::int64_t>(middle)));
    }
    return max_;
}

report::report(const settings& s) : json_(s.json) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
}

void report::introduce(std::string_view url, const trinco::breaker_options& options) {
    const auto where = shown(url);
    if (json_) {
        std::printf(
            "{\"event\":\"start\",\"url\":\"%s\",\"steady_ms\":%.1f,\"timeout_ms\":%.0f,"
            "\"slow_after_ms\":%.0f}\n",
            escaped(where).c_str(), ms(start_.time_since_epoch()), ms(options.call_timeout),
            ms(options.slow_call_after));
        return;
    }
    std::printf("guarding %s (Ctrl-C ends)\n", where.c_str());
    std::printf("  A call gives up after %s, and is slow after %s, even while it still hangs.\n",
                text(options.call_timeout).c_str(), text(options.slow_call_after).c_str());
    std::printf(
        "  The breaker opens when %.0f %% of at least %u calls within %s failed or were slow.\n",
        options.failure_rate * 100, options.minimum_calls, text(options.window).c_str());
    std::printf("  It refuses for %s at first; then %u probe%s decide%s.\n\n",
                text(options.open_for).c_str(), options.half_open_probes,
                options.half_open_probes == 1 ? "" : "s", options.half_open_probes == 1 ? "s" : "");
    std::puts("   time  calls     ok  failed  refused  hanging      median         max  breaker");
}

void report::call_begins() {
    const std::lock_guard hold(m_);
    ++second_.calls;
    ++all_.calls;
}

void report::call_ended(fate how, nanoseconds took, bool probe, std::string_view why) {
    const std::lock_guard hold(m_);
    for (auto* t : {&second_, &all_}) {
        if (probe) ++t->probes;
        switch (how) {
            case fate::ok: ++t->ok; break;
            case fate::failed: ++t->failed; break;
            case fate::refused: ++t->refused; break;
            case fate::stopped: ++t->stopped; break;
        }
        if (how == fate::ok || how == fate::failed) t->sent.add(took);
    }
    if (how == fate::ok) ok_.add(took);
    if (how == fate::refused) refused_.add(took);
    if (how != fate::failed) return;
    failed_.add(took);
    const auto known = reasons_.find(why);
    if (known != reasons_.end()) {
        ++known->second;
    } else if (reasons_.size() < reasons_max) {
        reasons_.emplace(why, 1);
    }
}

void report::call_skipped() {
    const std::lock_guard hold(m_);
    ++second_.skipped;
    ++all_.skipped;
}

void report::breaker_changed(const trinco::event& change) {
    if (change.kind != trinco::event_kind::state_changed) return;
    const std::lock_guard hold(m_);
    if (change.to == trinco::breaker_state::open) ++openings_;
    if (change.to == trinco::breaker_state::closed) ++closings_;
    if (json_) {
        std::printf(
            "{\"event\":\"state\",\"at_ms\":%.1f,\"from\":\"%s\",\"to\":\"%s\","
            "\"reason\":\"%s\",\"retry_after_ms\":%lld}\n",
            ms(age()), name(change.from).c_str(), name(change.to).c_str(),
            escaped(change.reason).c_str(), static_cast<long long>(change.now.retry_after.count()));
        return;
    }
    std::printf("%6.1fs  >> %s -> %s: %s", seconds(age()), name(change.from).c_str(),
                name(change.to).c_str(), change.reason.c_str());
    if (change.to == trinco::breaker_state::open) {
        std::printf(" (refuses for %s)", text(change.now.retry_after).c_str());
    }
    std::printf("\n");
}

void report::server_changed(std::string_view mood) {
    const std::string how(mood);
    const std::lock_guard hold(m_);
    if (json_) {
        std::printf("{\"event\":\"server\",\"at_ms\":%.1f,\"mood\":\"%s\"}\n", ms(age()),
                    how.c_str());
    } else {
        std::printf("%6.1fs  -- the server is %s\n", seconds(age()), how.c_str());
    }
}

void report::second_ended(trinco::breaker_state state, std::size_t waiting) {
    const std::lock_guard hold(m_);
    const auto s = std::exchange(second_, {});
    const auto median = s.sent.quantile(0.5);
    if (json_) {
        std::printf(
            "{\"event\":\"second\",\"at_ms\":%.1f,\"calls\":%llu,\"ok\":%llu,\"failed\":%llu,"
            "\"refused\":%llu,\"skipped\":%llu,\"probes\":%llu,\"hanging\":%zu,"
            "\"median_ms\":%.3f,\"max_ms\":%.3f,\"state\":\"%s\"}\n",
            ms(age()), number(s.calls), number(s.ok), number(s.failed), number(s.refused),
            number(s.skipped), number(s.probes), waiting, ms(median), ms(s.sent.max()),
            name(state).c_str());
        return;
    }
    const bool any = s.sent.size() > 0;
    std::printf("%6.0fs %6llu %6llu %7llu %8llu %8zu %11s %11s  %s\n", seconds(age()),
                number(s.calls), number(s.ok), number(s.failed), number(s.refused), waiting,
                any ? text(median).c_str() : "-", any ? text(s.sent.max()).c_str() : "-",
                name(state).c_str());
}

void report::finish(trinco::breaker_state state) {
    const std::lock_guard hold(m_);
    json_ ? finish_as_json(state) : finish_as_text(state);
}

void report::finish_as_text(trinco::breaker_state state) const {
    const auto& a = all_;
    std::printf("\nIn %.1f s %llu calls were wanted.\n", seconds(age()),
                number(a.calls + a.skipped));
    std::printf(
        "  %llu were sent: %llu ok, %llu failed, %llu given up at the end; %llu of them were "
        "probes.\n",
        number(a.calls - a.refused), number(a.ok), number(a.failed), number(a.stopped),
        number(a.probes));
    for (const auto& [why, n] : reasons_) std::printf("    %llu x %s\n", number(n), why.c_str());
    std::printf("  %llu were refused by the breaker.\n", number(a.refused));
    if (a.skipped > 0) {
        std::printf("  %llu were not even tried: all callers were waiting for answers.\n",
                    number(a.skipped));
    }
    if (ok_.size() > 0) {
        std::printf("  A call that succeeded took %s, at most %s.\n",
                    text(ok_.quantile(0.5)).c_str(), text(ok_.max()).c_str());
    }
    if (failed_.size() > 0) {
        std::printf("  A call that failed took    %s, at most %s.\n",
                    text(failed_.quantile(0.5)).c_str(), text(failed_.max()).c_str());
    }
    if (refused_.size() > 0) {
        std::printf("  A refusal took             %s, at most %s.\n",
                    text(refused_.quantile(0.5)).c_str(), text(refused_.max()).c_str());
    }
    std::printf("  The breaker opened %s, closed %s, and is %s.\n", times(openings_).c_str(),
                times(closings_).c_str(), name(state).c_str());
}

void report::finish_as_json(trinco::breaker_state state) const {
    const auto& a = all_;
    std::printf(
        "{\"event\":\"summary\",\"at_ms\":%.1f,\"calls\":%llu,\"sent\":%llu,\"ok\":%llu,"
        "\"failed\":%llu,\"refused\":%llu,\"stopped\":%llu,\"skipped\":%llu,\"probes\":%llu,"
        "\"ok_median_ms\":%.6f,\"failed_median_ms\":%.6f,\"failed_max_ms\":%.6f,"
        "\"refused_median_ms\":%.6f,\"refused_p95_ms\":%.6f,\"refused_max_ms\":%.6f,"
        "\"opened\":%llu,\"closed\":%llu,\"state\":\"%s\",\"failures\":{",
        ms(age()), number(a.calls), number(a.calls - a.refused), number(a.ok), number(a.failed),
        number(a.refused), number(a.stopped), number(a.skipped), number(a.probes),
        ms(ok_.quantile(0.5)), ms(failed_.quantile(0.5)), ms(failed_.max()),
        ms(refused_.quantile(0.5)), ms(refused_.quantile(0.95)), ms(refused_.max()),
        number(openings_), number(closings_), name(state).c_str());
    const char* comma = "";
    for (const auto& [why, n] : reasons_) {
        std::printf("%s\"%s\":%llu", comma, escaped(why).c_str(), number(n));
        comma = ",";
    }
    std::printf("}}\n");
}

}  // namespace guarded_http
