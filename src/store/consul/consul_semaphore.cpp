#include "store/consul/consul_semaphore.hpp"

#include <algorithm>

#include "core/mutant.hpp"
#include "store/consul/consul_layout.hpp"

namespace trinco::detail::consul {

bool semaphore_state::has_news_for(std::uint32_t n) const {
    if (what != what_t::counts || limit != std::int64_t{n}) return true;
    return alive.size() < n;
}

semaphore_state state_of(const std::vector<key_value>& rows, std::string_view key) {
    using what_t = semaphore_state::what_t;
    semaphore_state out;
    const auto kv =
        std::find_if(rows.begin(), rows.end(), [&](auto& one) { return one.key == key; });
    if (kv == rows.end()) return out;
    out.flags = kv->flags;
    out.index = kv->modify_index;
    if (kv->flags != semaphore_flags) {
        out.what = what_t::other_kind;
        return out;
    }
    if (kv->value.empty()) return out;  // as Go takes it
    auto said = holders_of(kv->value);
    if (!said) {
        out.what = what_t::unreadable;
        return out;
    }
    out.what = what_t::counts;
    out.limit = said->limit;
    out.listed = std::move(said->sessions);
    if (TRINCO_MUTANT("consul_dead_holder_kept")) out.alive = out.listed;
    for (const auto& row : rows) {
        if (out.listed.contains(row.session)) out.alive.insert(row.session);
    }
    return out;
}

bool has_place(const std::optional<key_value>& kv, const std::string& session) {
    if (!kv || kv->flags != semaphore_flags) return false;
    const auto said = holders_of(kv->value);
    return said && said->sessions.contains(session);
}

operation change_of(const std::string& key, std::uint64_t index, std::int64_t limit,
                    std::set<std::string> sessions) {
    using verb_t = operation::verb_t;
    operation out;
    out.key = key;
    out.index = index;
    if (sessions.empty()) {
        out.verb = verb_t::erase_cas;
        return out;
    }
    out.verb = TRINCO_MUTANT("consul_place_uncompared") ? verb_t::set : verb_t::cas;
    out.flags = semaphore_flags;
    out.value = text_of(semaphore_holders{limit, std::move(sessions)});
    return out;
}

}  // namespace trinco::detail::consul
