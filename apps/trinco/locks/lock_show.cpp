#include "apps/trinco/locks/lock_show.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/locks/lock_use.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "apps/trinco/output/table.hpp"
#include "apps/trinco/output/visible.hpp"

namespace trinco::program {
namespace {

using detail::entry;

std::string kind_text(const entry& e) {
    std::string text(kind_word(e.kind));
    if (e.n > 0) text += " of " + std::to_string(e.n);
    return text;
}

std::string token_text(const entry& e) {
    return e.token == 0 ? "" : std::to_string(e.token);
}

// How much of its lease is left, or how long it is where that is all that is told.
std::string ttl_text(const entry& e) {
    if (!e.left_is_whole) return duration_words(e.left);
    return e.left.count() > 0 ? "of " + duration_words(e.left) : "";
}

std::string age_text(const entry& e) {
    const auto age = age_of(e);
    return age ? duration_words(*age) : "";
}

std::string note_text(const entry& e) {
    if (!e.evicted) return "";
    std::string text = "asked back by " + (e.evicted->who.empty() ? "?" : e.evicted->who);
    if (!e.evicted->why.empty()) text += ": " + e.evicted->why;
    return text;
}

std::string array(const std::vector<entry>& entries) {
    json_array all;
    for (const auto& e : entries) all.add_raw(entry_json(e).text());
    return all.text();
}

std::string holder_text(const lock_row& row) {
    if (row.holders.empty()) return "";
    std::string text = owner_name(row.holders.front());
    if (row.holders.size() > 1) text += " +" + std::to_string(row.holders.size() - 1);
    return text;
}

const entry& first_of(const lock_row& row) {
    return row.holders.empty() ? row.waiters.front() : row.holders.front();
}

// NAME HOLDER HELD TTL WAITERS WAIT
std::vector<std::string> cells_of(const lock_row& row) {
    std::vector<std::string> cells{row.name, "", "", "", "", ""};
    if (row.lists_waiters) cells[4] = std::to_string(row.waiters.size());
    if (!row.holders.empty()) {
        const entry& first = row.holders.front();
        cells[1] = holder_text(row);
        cells[2] = age_text(first);
        cells[3] = ttl_text(first);
    }
    const auto waited = longest_wait(row);
    if (waited.count() > 0) cells[5] = duration_words(waited);
    return cells;
}

std::string holder_token(const lock_row& row) {
    return row.holders.empty() ? "" : token_text(row.holders.front());
}

json_object row_json(const lock_row& row, detail::claim_kind kind) {
    json_object o;
    o.add("name", row.name).add("kind", kind_word(kind)).add_raw("holders", array(row.holders));
    row.lists_waiters ? o.add("waiters", row.waiters.size()) : o.add_null("waiters");
    if (row.waiters.empty()) return o.add_null("longest_wait_ms");
    return o.add("longest_wait_ms", longest_wait(row).count());
}

// Free when it was not there any more at last.
lock_row row_named(const std::string& name, const looked_often& seen) {
    const auto at = std::find_if(seen.last.begin(), seen.last.end(),
                                 [&](const lock_row& row) { return row.name == name; });
    return at == seen.last.end() ? lock_row{name, {}, {}, seen.lists_waiters} : *at;
}

}  // namespace

std::string_view kind_word(detail::claim_kind kind) noexcept {
    switch (kind) {
        case detail::claim_kind::exclusive: return "exclusive";
        case detail::claim_kind::shared: return "shared";
        case detail::claim_kind::permit: return "semaphore";
    }
    return "";
}

json_object entry_json(const entry& e) {
    json_object o;
    o.add("owner", e.info.empty() ? e.lease_label : e.info).add("kind", kind_word(e.kind));
    if (e.n > 0) o.add("n", e.n);
    if (e.token != 0) o.add("token", e.token);
    if (e.since.count() > 0) o.add("since_ms", e.since.count());
    if (e.held) o.add("held_ms", e.held->count());
    e.left_is_whole ? o.add_null("ttl_left_ms") : o.add("ttl_left_ms", e.left.count());
    if (e.left_is_whole && e.left.count() > 0) o.add("ttl_ms", e.left.count());
    if (e.evicted) {
        o.add_raw("asked_back",
                  json_object().add("by", e.evicted->who).add("reason", e.evicted->why).text());
    }
    return o;
}

std::string locks_table(const std::vector<lock_row>& rows) {
    table t({"NAME", "HOLDER", "HELD", "TTL", "WAITERS", "WAIT", "TOKEN"});
    for (const auto& row : rows) {
        auto cells = cells_of(row);
        cells.push_back(holder_token(row));
        t.row(std::move(cells));
    }
    return t.text();
}

std::string locks_table(const looked_often& seen) {
    table t({"NAME", "HOLDER", "HELD", "TTL", "WAITERS", "WAIT", "USED", "P99-WAIT", "TOKEN"});
    for (const auto& one : seen.use.locks()) {
        const lock_row row = row_named(one.name, seen);
        auto cells = cells_of(row);
        cells.push_back(whole_percent(one.share(seen.use.looks())));
        cells.push_back(one.waits.empty() ? "" : measured_text(one.waits.p99()));
        cells.push_back(holder_token(row));
        t.row(std::move(cells));
    }
    return t.text();
}

std::string locks_json(const std::vector<lock_row>& rows) {
    json_array all;
    for (const auto& row : rows) all.add_raw(row_json(row, first_of(row).kind).text());
    return json_object().add("schema", 1).add_raw("locks", all.text()).text() + "\n";
}

std::string locks_json(const looked_often& seen) {
    json_array all;
    for (const auto& one : seen.use.locks()) {
        json_object o = row_json(row_named(one.name, seen), one.kind);
        all.add_raw(o.add_raw("use", use_json(one, seen.use.looks()).text()).text());
    }
    return json_object()
               .add("schema", 1)
               .add_raw("locks", all.text())
               .add("looked_ms", seen.took.count())
               .add("looks", seen.use.looks())
               .text() +
           "\n";
}

json_object use_json(const used_lock& one, std::size_t looks) {
    json_object o;
    o.add("share", one.share(looks)).add("grants", one.grants);
    one.lists_waiters ? o.add("waits", one.waits.count()) : o.add_null("waits");
    if (one.waits.empty()) return o.add_null("p99_wait_ms");
    return o.add("p99_wait_ms",
                 std::chrono::round<std::chrono::milliseconds>(one.waits.p99()).count());
}

std::string whole_percent(double share) {
    return std::to_string(std::lround(share * 100)) + " %";
}

std::string lock_names(const std::vector<lock_row>& rows) {
    std::string names;
    for (const auto& row : rows) names += row.name + "\n";
    return names;
}

std::string lock_table(const lock_row& row) {
    const auto is_noted = [](const entry& e) { return e.evicted.has_value(); };
    const bool noted = std::any_of(row.holders.begin(), row.holders.end(), is_noted) ||
                       std::any_of(row.waiters.begin(), row.waiters.end(), is_noted);
    std::vector<std::string> head = {"PLACE", "KIND", "OWNER", "SINCE", "TTL", "TOKEN"};
    if (noted) head.emplace_back("NOTE");
    table t(head);
    const auto add = [&](const std::string& place, const entry& e) {
        std::vector<std::string> cells = {place,       kind_text(e), owner_name(e),
                                          age_text(e), ttl_text(e),  token_text(e)};
        if (noted) cells.push_back(note_text(e));
        t.row(std::move(cells));
    };
    for (const auto& e : row.holders) add("holds", e);
    std::size_t place = 0;
    for (const auto& e : row.waiters) add(std::to_string(++place), e);
    return t.text();
}

std::string lock_json(const lock_row& row) {
    json_object o;
    o.add("schema", 1).add("name", row.name).add_raw("holders", array(row.holders));
    row.lists_waiters ? o.add_raw("waiters", array(row.waiters)) : o.add_null("waiters");
    return o.text() + "\n";
}

std::string lock_owners(const lock_row& row) {
    std::string owners;
    for (const auto* list : {&row.holders, &row.waiters}) {
        for (const auto& e : *list) owners += visible(owner_name(e)) + "\n";
    }
    return owners;
}

}  // namespace trinco::program
