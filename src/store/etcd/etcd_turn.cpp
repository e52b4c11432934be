#include "store/etcd/etcd_turn.hpp"

#include <algorithm>

#include "store/etcd/etcd_layout.hpp"

namespace trinco::detail::etcd {
namespace {

using what_t = judgement::what_t;

constexpr std::int64_t strays = 8;  // keys under NAME/ that are no entries, as far as expected

struct queued {
    std::string key;
    std::int64_t created = 0;
    seat asks;
};

// The earlier entries among the keys, oldest first.
std::vector<queued> entries_among(const turn_question& q, const std::vector<key_value>& kvs) {
    std::vector<queued> out;
    for (const auto& kv : kvs) {
        if (q.mine != 0 && kv.create_revision >= q.mine) continue;
        const auto place = entry_of(kv);
        if (!place || place->name != q.name) continue;
        out.push_back({kv.key, kv.create_revision, seat_of(kv.value)});
    }
    std::sort(out.begin(), out.end(),
              [](const queued& a, const queued& b) { return a.created < b.created; });
    return out;
}

judgement wait_for(what_t what, const queued& blocker) {
    return {what, blocker.key, {}, false};
}

judgement judge_exclusive(const std::vector<queued>& before, bool all) {
    if (!before.empty()) return wait_for(what_t::wait_erased, before.back());
    return {all ? what_t::turn : what_t::read_deeper, {}, {}, false};
}

// The latest earlier entry that is in its way whatever else is granted.
const queued* latest_conflict(const turn_question& q, const std::vector<queued>& before) {
    const auto found = std::find_if(before.rbegin(), before.rend(),
                                    [&](const queued& one) { return conflicts(one.asks, q.asks); });
    return found == before.rend() ? nullptr : &*found;
}

judgement judge_shared(const turn_question& q, const std::vector<queued>& before, bool all) {
    if (const auto* c = latest_conflict(q, before)) return wait_for(what_t::wait_erased, *c);
    return {all ? what_t::turn : what_t::read_deeper, {}, {}, false};
}

judgement judge_permit(const turn_question& q, const std::vector<queued>& oldest, bool all,
                       const std::vector<queued>& newest) {
    judgement out;
    turn_rule rule;
    for (const auto& one : oldest) {
        out.limit_differs = out.limit_differs || limits_differ(one.asks, q.asks);
        rule.pass(one.asks);
    }
    if (rule.has_turn(q.asks)) {
        if (!all) out.what = what_t::read_deeper;
        return out;
    }
    const auto& latest = newest.empty() ? oldest : newest;
    // Behind many keys that are no entries the last one is not known yet.
    if (latest.empty() || (!all && newest.empty())) {
        out.what = what_t::read_deeper;
        return out;
    }
    const bool saw_all = all || newest.back().created <= oldest.back().created;
    if (const auto* c = latest_conflict(q, latest)) {
        out.what = what_t::wait_erased;
        out.blocker = c->key;
    } else if (saw_all && oldest.size() == q.asks.n) {
        out.what = what_t::wait_any;
    } else {
        out.what = what_t::wait_moved;
        out.blocker = latest.back().key;
    }
    return out;
}

}  // namespace

std::vector<range_request> reads_for(const turn_question& q) {
    range_request latest;
    latest.keys = queue_of(q.name);
    latest.limit = q.depth;
    latest.order = range_request::order_t::descend;
    latest.by = range_request::by_t::create_revision;
    latest.max_create_revision = q.mine == 0 ? 0 : q.mine - 1;
    // What kind an earlier entry is of does not matter to an exclusive one.
    latest.keys_only = q.asks.kind == claim_kind::exclusive;
    if (q.asks.kind != claim_kind::permit) return {latest};
    auto first = latest;
    first.order = range_request::order_t::ascend;
    if (q.depth != 0) first.limit = std::max<std::int64_t>(q.depth, q.asks.n + strays);
    latest.limit = strays;
    return {first, latest};
}

judgement judge(const turn_question& q, std::span<const operation_reply> replies) {
    const auto& first = replies.front();
    const bool all = !first.more;
    const auto before = entries_among(q, first.kvs);
    judgement out;
    switch (q.asks.kind) {
        case claim_kind::exclusive: out = judge_exclusive(before, all); break;
        case claim_kind::shared: out = judge_shared(q, before, all); break;
        case claim_kind::permit:
            out = judge_permit(q, before, all, entries_among(q, replies[1].kvs));
            break;
    }
    if (all) out.ahead = static_cast<std::uint32_t>(before.size());
    return out;
}

}  // namespace trinco::detail::etcd
