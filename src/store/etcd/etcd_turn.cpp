#include "store/etcd/etcd_turn.hpp"

#include <algorithm>

#include "store/etcd/etcd_layout.hpp"

namespace trinco::detail::etcd {
namespace {

using what_t = judgement::what_t;

constexpr std::int64_t reply_most = 3 * 1'024 * 1'024;            // of the 4 MiB of a message
constexpr std::int64_t longest_key = 400;                         // as it lies in a reply
constexpr std::int64_t longest_pair = longest_key + 4'096 + 300;  // with information and eviction
constexpr std::int64_t strays = 8;  // keys under NAME/ that are no entries, as far as expected
constexpr std::int64_t first_page = 16;
constexpr std::int64_t later_page = 4'000;
constexpr std::int64_t least_page = 4;

}  // namespace

range_request queue_scan::next(std::size_t parts) const {
    range_request page;
    page.keys = queue_of(q_.name);
    page.order = range_request::order_t::descend;
    page.by = range_request::by_t::create_revision;
    // What kind an earlier entry is of does not matter to an exclusive one.
    page.keys_only = q_.asks.kind == claim_kind::exclusive;
    const auto permits = static_cast<std::int64_t>(q_.asks.n) + strays;
    const auto wanted = began_ ? later_page : std::max(first_page, permits);
    const auto room = reply_most / (page.keys_only ? longest_key : longest_pair) /
                      static_cast<std::int64_t>(parts);
    page.limit = std::max(std::min(wanted, room), least_page) * widen_;
    // Keys of one revision may lie on two pages.
    page.max_create_revision = last_;
    if (q_.mine != 0 && (last_ == 0 || last_ >= q_.mine)) page.max_create_revision = q_.mine - 1;
    return page;
}

void queue_scan::take(const operation_reply& page) {
    began_ = true;
    bool fresh = false;
    for (const auto& kv : page.kvs) {
        if (kv.create_revision != std::exchange(last_, kv.create_revision)) edge_.clear();
        if (!edge_.insert(kv.key).second) continue;
        fresh = true;
        pass(kv);
    }
    if (!page.more) {
        reached_head();
    } else if (!fresh) {
        widen_ *= 2;
    }
}

void queue_scan::pass(const key_value& kv) {
    if (q_.mine != 0 && kv.create_revision >= q_.mine) {
        if (kv.create_revision > q_.mine) ++behind_;
        return;
    }
    const auto place = entry_of(kv);
    if (!place || place->name != q_.name) return;
    ++entries_;
    const auto seat = seat_of(kv.value);
    out_.limit_differs = out_.limit_differs || limits_differ(seat, q_.asks);
    if (done_) return;
    if (conflicts(seat, q_.asks)) return decide(what_t::wait_erased, kv.key, kv.create_revision);
    if (seat.kind != claim_kind::permit) return;
    if (newest_.empty()) newest_ = kv.key;
    if (++permits_ > q_.asks.n) decide(what_t::wait_moved, newest_);
}

void queue_scan::decide(what_t what, std::string blocker, std::int64_t since) {
    out_.what = what;
    out_.blocker = std::move(blocker);
    out_.blocker_since = since;
    done_ = true;
}

void queue_scan::reached_head() {
    out_.ahead = entries_;
    const bool full = q_.asks.kind == claim_kind::permit && permits_ >= q_.asks.n;
    if (!done_) decide(full ? what_t::wait_any : what_t::turn, {});
}

}  // namespace trinco::detail::etcd
