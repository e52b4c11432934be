// How records are shown.
#include <algorithm>
#include <chrono>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/output/table.hpp"
#include "apps/trinco/output/utc_time.hpp"
#include "apps/trinco/output/visible.hpp"
#include "apps/trinco/records/record_list.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

using state = detail::once_record::state_t;

std::string since_text(const detail::once_record& r) {
    return utc_text(std::chrono::system_clock::time_point(r.since));
}

void line(std::string& to, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    std::string head = std::string(name) + ":";
    head.resize(std::max<std::size_t>(head.size() + 1, 13), ' ');
    to.append(head).append(visible(value)).append("\n");
}

}  // namespace

std::string_view state_word(const record_row& row) noexcept {
    if (!row.is) return "unknown";
    if (is_interrupted(row)) return "interrupted";
    return name_of(row.is->state);
}

std::string begun_words(const detail::once_record& r) {
    return detail::quoted(r.owner, 256) + " began it at " + since_text(r) + " as run " + r.run_id +
           (r.attempt > 1 ? ", attempt " + std::to_string(r.attempt) : "");
}

std::string interrupted_words(const detail::once_record& r) {
    return begun_words(r) + ", and died, or lost its lock, before it recorded an end";
}

std::string life_words(const record_row& row, std::string_view store_url) {
    // The kernel tells who has died on this machine.
    if (!row.holder || detail::scheme_of(store_url) == "local") return {};
    const auto left = duration_words(row.holder->left);
    if (!row.holder->left_is_whole) {
        // Told in whole seconds, rounded down.
        const auto about = std::max(std::chrono::ceil<std::chrono::seconds>(row.holder->left),
                                    std::chrono::seconds(1));
        return "; its session ends in about " + duration_words(about) + " unless it is renewed";
    }
    if (row.holder->left.count() == 0) return {};
    return "; if it was killed, its session ends one to two times " + left +
           " after its last renewal";
}

std::string records_table(const std::vector<record_row>& rows) {
    table t({"KEY", "STATE", "ATTEMPT", "SINCE", "OWNER"});
    for (const auto& row : rows) {
        const auto r = row.is.value_or(detail::once_record{});
        t.row({row.key, std::string(state_word(row)), row.is ? std::to_string(r.attempt) : "",
               row.is ? since_text(r) : "", r.owner});
    }
    return t.text();
}

std::string record_table(const record_row& row) {
    std::string out;
    line(out, "key", row.key);
    line(out, "state", state_word(row));
    if (!row.is) return out;
    const auto& r = *row.is;
    line(out, "owner", r.owner);
    line(out, "since", since_text(r));
    line(out, "attempt", std::to_string(r.attempt));
    line(out, "run", r.run_id);
    line(out, "fingerprint", r.fingerprint);
    if (r.state == state::done) line(out, "result", r.payload);
    if (r.state == state::failed) line(out, "error", r.payload);
    return out;
}

json_object record_json(const record_row& row) {
    json_object o;
    o.add("key", row.key).add("state", state_word(row));
    if (!row.is) return o;
    const auto& r = *row.is;
    o.add("owner", r.owner).add("since", since_text(r)).add("attempt", r.attempt);
    o.add("run_id", r.run_id);
    if (!r.fingerprint.empty()) o.add("fingerprint", r.fingerprint);
    if (r.state == state::done) o.add("result", r.payload);
    if (r.state == state::failed) o.add("error", r.payload);
    return o;
}

}  // namespace trinco::program
