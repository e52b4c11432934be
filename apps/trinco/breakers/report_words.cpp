#include "apps/trinco/breakers/report_words.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/trinco/breakers/instance_words.hpp"
#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/breakers/why_words.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/output/table.hpp"

namespace trinco::program {
namespace {

using std::chrono::milliseconds;
using trinco::detail::share;
using trinco::detail::view;

// When the running era began. Eras are times of the store's clock in microseconds, or one more than
// an older one, so this is about right where that clock is about ours.
std::optional<milliseconds> since(const view& v) {
    if (v.era == 0) return std::nullopt;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto began = std::chrono::microseconds(static_cast<std::int64_t>(v.era));
    return std::max(milliseconds(0), std::chrono::floor<milliseconds>(now - began));
}

std::string since_text(const view& v) {
    const auto lasted = since(v);
    return lasted ? duration_words(*lasted) : "-";
}

// Of an override, which the state in force names, when it ends.
std::string next_cell(const view& v) {
    if (v.over != override_kind::none) return duration_words(v.over_remaining);
    if (v.remaining.count() > 0) return duration_words(v.remaining);
    return v.state == breaker_state::closed ? "-" : "now";
}

// Of what keeps calls away, or would have.
std::string reason_cell(const view& v) {
    const bool is_told = v.over != override_kind::none || v.state != breaker_state::closed;
    return is_told ? v.reason : "-";
}

std::string voters_text(const report& r) {
    return std::to_string(r.now.voters_failing) + "/" + std::to_string(r.now.live);
}

std::string threshold_text(const breaker_options& o) {
    std::string text = percent_text(o.failure_rate) + " of at least " +
                       std::to_string(o.minimum_calls) + " in " + duration_words(o.window);
    if (o.failure_count != 0) text += ", or at " + std::to_string(o.failure_count) + " failures";
    return text;
}

std::string counts_text(const counts& n) {
    return std::to_string(n.success) + " succeeded, " + std::to_string(n.failure) + " failed, " +
           std::to_string(n.slow()) + " slow, " + std::to_string(n.ignored) + " ignored, " +
           std::to_string(n.rejected) + " refused";
}

std::string options_text(const report& r) {
    if (r.options.empty()) return "  options  not known: no process has used it yet\n";
    std::string text = "  options  " + whose_options(r) + "\n";
    const auto shown = shared_options(options_of_text(r.options));
    std::size_t longest = 0;
    for (const option_shown& o : shown) longest = std::max(longest, o.key.size());
    for (const option_shown& o : shown) {
        text += "    " + std::string(o.key) + std::string(longest + 2 - o.key.size(), ' ') +
                o.value + "\n";
    }
    return text;
}

std::string options_cell(const report& r) {
    if (!r.options_set) return "-";
    return "set, " + (r.set_remaining.count() == 0 ? "over" : duration_words(r.set_remaining));
}

}  // namespace

std::string table_of(std::span<const report> rows, std::optional<std::size_t> width) {
    table t({"NAME", "STATE", "SINCE", "NEXT", "FAILED", "LIMIT", "CALLS", "VOTERS", "OPTIONS",
             "REASON"});
    for (const report& r : rows) {
        if (r.now.error) {
            t.row({r.breaker, "unreadable", "-", "-", "-", "-", "-", "-", "-",
                   unreadable_text(r.now.error)});
            continue;
        }
        const view& v = r.now.fleet;
        const counts& n = r.now.window;
        t.row({r.breaker, std::string(word_of(v)), since_text(v), next_cell(v),
               share_text(n.failure, n.judged()),
               r.options.empty() ? "-" : percent_text(options_of_text(r.options).failure_rate),
               std::to_string(n.judged()), voters_text(r), options_cell(r), reason_cell(v)});
    }
    constexpr std::array<std::string_view, 3> sparse = {"NEXT", "OPTIONS", "REASON"};
    t.drop_if_empty(sparse);
    if (width) t.cut_last(*width);
    return t.text();
}

std::string page_of(const report& r) {
    const view& v = r.now.fleet;
    const breaker_options o = options_of_text(r.options);
    std::string text = sentence_of(r.breaker, v) + "\n";
    text += "  since    " + since_text(v) + "\n";
    const std::string why = why_text(r);
    if (!why.empty()) text += "  why      " + why + "\n";
    text += "  window   " + counts_text(r.now.window);
    if (v.state != breaker_state::closed && r.now.window.judged() == 0) {
        text += "; it begins anew with every change of state";
    }
    text += "\n";
    text += "  failed   " + share_text(r.now.window.failure, r.now.window.judged());
    if (!r.options.empty()) text += "; opens at " + threshold_text(o);
    text += "\n  totals   " + counts_text(r.totals) + "\n";
    text += "  voters   " + std::to_string(r.now.voters_failing) + " of " +
            std::to_string(r.now.live) + " failing; " + std::to_string(o.quorum) +
            " must be, or all that are alive\n";
    if (v.state != breaker_state::closed) {
        text += "  probes   " + std::to_string(r.now.probes_left) + " of " +
                std::to_string(o.half_open_probes) + " left\n";
    }
    text += options_text(r);
    const std::string instances = instances_text(r);
    if (!instances.empty()) text += "\n" + instances;
    return text;
}

json_object json_of(std::string_view name, const view& v) {
    json_object all;
    all.add("name", name).add_null("error");
    add_view(all, v);
    return all;
}

json_object json_of(const report& r) {
    if (r.now.error) {
        return json_object().add("name", r.breaker).add("error", unreadable_text(r.now.error));
    }
    const view& v = r.now.fleet;
    const counts& n = r.now.window;
    const breaker_options o = options_of_text(r.options);
    json_object all = json_of(r.breaker, v);
    const auto lasted = since(v);
    if (lasted) {
        all.add("since_ms", lasted->count());
    } else {
        all.add_null("since_ms");
    }
    if (n.judged() == 0) {
        all.add_null("failed_share");
    } else {
        all.add("failed_share", static_cast<double>(n.failure) / static_cast<double>(n.judged()));
    }
    if (r.options.empty()) {
        all.add_null("opens_at_share");
    } else {
        all.add("opens_at_share", o.failure_rate);
    }
    const std::string why = why_text(r);
    why.empty() ? all.add_null("why") : all.add("why", why);
    all.add_raw("window", json_of(n).text());
    all.add_raw("totals", json_of(r.totals).text());
    json_object voters;
    voters.add("failing", r.now.voters_failing).add("live", r.now.live).add("quorum", o.quorum);
    all.add_raw("voters", voters.text());
    all.add("probes_left", r.now.probes_left);
    all.add("options_set", r.options_set);
    if (r.options_set) {
        all.add("set_remaining_ms", r.set_remaining.count());
    } else {
        all.add_null("set_remaining_ms");
    }
    return all;
}

json_object full_json_of(const report& r) {
    json_object all = json_of(r);
    if (r.options.empty()) {
        all.add_null("options");
    } else {
        const breaker_options o = options_of_text(r.options);
        json_object options;
        for (const option_shown& shown : shared_options(o)) {
            const auto& row = *detail::find_option(shown.key);
            const double value = row.value(o).value_or(0);
            const bool is_whole = row.unit == detail::option_unit::number ||
                                  row.unit == detail::option_unit::duration;
            if (is_whole) {
                options.add(detail::wire_key(row), static_cast<std::int64_t>(value));
            } else {
                options.add(detail::wire_key(row), value);
            }
        }
        all.add_raw("options", options.text());
    }
    json_array instances;
    const std::uint64_t latest = latest_options(r);
    for (const share& s : r.shares) {
        instances.add_raw(json_of(s, latest).text());
    }
    all.add_raw("instances", instances.text());
    return all;
}

json_object json_head(const store& at) {
    json_object head;
    head.add("schema", breakers_schema).add("store", at.url()).add("namespace", at.name_space());
    return head;
}

}  // namespace trinco::program
