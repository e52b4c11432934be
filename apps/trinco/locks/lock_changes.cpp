#include "apps/trinco/locks/lock_changes.hpp"

#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/locks/lock_show.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "apps/trinco/output/visible.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using detail::entry;
using kind_t = lock_change::kind_t;

constexpr std::size_t owner_shown = 256;

}  // namespace

std::vector<lock_change> lock_changes::look(const std::vector<lock_row>& now) {
    std::map<key, entry> seen;
    std::vector<key> order;  // of the queues
    for (const auto& row : now) {
        for (const auto* list : {&row.holders, &row.waiters}) {
            for (const auto& e : *list) {
                order.push_back({row.name, e.handle});
                seen.emplace(order.back(), e);
            }
        }
    }
    std::vector<lock_change> all;
    for (const auto& [k, e] : known_) {
        if (seen.contains(k)) continue;
        all.push_back({e.holds ? kind_t::released : kind_t::left, k.name, e});
    }
    for (const auto& k : order) {
        const entry& e = seen.at(k);
        const auto before = known_.find(k);
        const bool is_new = before == known_.end();
        if (e.holds && (is_new || !before->second.holds)) {
            all.push_back({kind_t::granted, k.name, e});
        } else if (is_new) {
            all.push_back({kind_t::waits, k.name, e});
        }
        if (e.evicted && (is_new || !before->second.evicted)) {
            all.push_back({kind_t::asked_back, k.name, e});
        }
    }
    known_ = std::move(seen);
    return all;
}

std::string_view event_word(kind_t kind) noexcept {
    switch (kind) {
        case kind_t::granted: return "granted";
        case kind_t::waits: return "waits";
        case kind_t::released: return "released";
        case kind_t::left: return "left";
        case kind_t::asked_back: return "asked_back";
    }
    return "";
}

std::string change_words(const lock_change& change) {
    const entry& e = change.what;
    const std::string owner = owner_words(e, owner_shown);
    std::string text = change.name + " ";
    switch (change.kind) {
        case kind_t::granted:
            text += "granted to " + owner;
            if (e.kind != detail::claim_kind::exclusive) {
                text += " (" + std::string(kind_word(e.kind)) + ")";
            }
            if (e.token != 0) text += ", token " + std::to_string(e.token);
            break;
        case kind_t::waits: text += "awaited by " + owner; break;
        case kind_t::released: text += "no longer held by " + owner; break;
        case kind_t::left: text += "no longer awaited by " + owner; break;
        case kind_t::asked_back:
            text += "asked back from " + owner + " by " + detail::quoted(e.evicted->who);
            if (!e.evicted->why.empty()) text += ": " + visible(e.evicted->why);
            break;
    }
    return text;
}

}  // namespace trinco::program
