#include <algorithm>

#include "core/mutant.hpp"
#include "store/redis/cluster_route_impl.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto between_rounds = 500ms;
constexpr auto first_spread = 50ms;  // processes that were told the same do not ask at once
constexpr auto demand_pause = 20ms;
constexpr auto answer_within = 500ms;
constexpr auto denied_retry = 5s;
constexpr auto doubts_settle = 5s;
constexpr backoff retry{50ms, 1s};

[[nodiscard]] redis_refusal refusal_of_map(const cluster_node& from, const resp_reply& reply) {
    const auto word = reply.error_word();
    const auto at = text_of(from.at);
    if (word == "NOPERM") {
        return {errc::denied, "the server at " + at +
                                  " refused CLUSTER SLOTS: NOPERM; the user needs the right "
                                  "+cluster|slots"};
    }
    if (reply.text.find("cluster support disabled") != std::string::npos) {
        return {errc::unavailable, "the server at " + at + " is not a node of a cluster"};
    }
    if (auto refusal = refusal_of({{"CLUSTER"}}, reply)) return *refusal;
    return {errc::unavailable, "the node at " + at + " knows nobody who owns slots"};
}

}  // namespace

// For a reason that has come up; many of them are one question.
void cluster_route_impl::want_map() {
    if (asking_for_map) {
        map_wanted_again = true;
        return;
    }
    if (std::exchange(map_timer_set, true)) return;
    const auto spread = std::chrono::duration_cast<boot_clock::duration>(
        unit_share(on.random()) * std::chrono::duration<double>(first_spread));
    const auto now = on.now();
    map_timer =
        on.at(std::max(now, last_round + between_rounds) + spread, [this] { ask_for_map(); });
}

void cluster_route_impl::hurry() {
    if (asking_for_map) return;
    map_timer_set = true;
    map_timer = on.at(std::max(on.now(), last_round + demand_pause), [this] { ask_for_map(); });
}

void cluster_route_impl::mistrust(std::string_view key, redis_refusal why) {
    const auto* const owner = map ? map->owner(slot_of_key(key)) : nullptr;
    if (owner == nullptr) return want_map();
    auto& node = node_at(*owner);
    if (std::exchange(node.doubted, true)) return;
    node.why = why.why;
    const auto now = on.now();
    if (now - last_doubt > doubts_settle) doubts = 0;
    last_doubt = now;
    if (asking_for_map) {
        map_wanted_again = true;
        return;
    }
    map_timer_set = true;
    map_timer = on.after(retry.wait(doubts++, on.random()), [this] { ask_for_map(); });
}

void cluster_route_impl::ask_for_map() {
    map_timer_set = map_wanted_again = false;
    map_timer.cancel();
    asking_for_map = true;
    last_round = on.now();
    to_ask = whom_to_ask();
    all_denied = true;
    said.clear();
    ask_next();
}

// Nodes that serve come first, doubtful ones last; of equals chance decides.
std::deque<stream_address> cluster_route_impl::whom_to_ask() {
    std::vector<std::pair<std::uint64_t, stream_address>> all;
    const auto add = [&](const stream_address& where) {
        for (const auto& [rank, one] : all) {
            if (one == where) return;
        }
        const auto known = nodes.find(text_of(where));
        std::uint64_t rank = 1;
        if (known != nodes.end()) {
            rank = known->second->doubted ? 2 : known->second->serving ? 0 : 1;
        }
        all.emplace_back((rank << 62) | (on.random() >> 2), where);
    };
    for (const auto& [text, node] : nodes) {
        if (node->serving) add(node->at);
    }
    if (map) {
        for (const auto& one : map->nodes()) add(one);
    }
    for (auto one : target.nodes) {
        one.tls = target.tls;
        add(one);
    }
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::deque<stream_address> in_order;
    for (auto& [rank, one] : all) in_order.push_back(std::move(one));
    return in_order;
}

void cluster_route_impl::ask_next() {
    if (to_ask.empty()) return nobody_answered();
    auto& node = node_at(to_ask.front());
    to_ask.pop_front();
    ++node.in_flight;
    node.link->wake();
    map_asking = node.link->request(resp_command(std::vector<std::string>{"CLUSTER", "SLOTS"}),
                                    on.now() + answer_within,
                                    [this, &node](std::error_code error, const resp_reply& reply) {
                                        --node.in_flight;
                                        map_came(node, error, reply);
                                    });
}

void cluster_route_impl::map_came(cluster_node& from, std::error_code error,
                                  const resp_reply& reply) {
    if (!error) {
        if (auto made = cluster_map::from(reply, from.at)) return adopt(std::move(*made));
    }
    auto why = error ? redis_refusal{error, from.why} : refusal_of_map(from, reply);
    if (why.why.empty()) why.why = "the node at " + text_of(from.at) + " does not answer";
    all_denied = all_denied && why.error == errc::denied;
    if (said.find(why.why) == std::string::npos) said += (said.empty() ? "" : "; ") + why.why;
    ask_next();
}

void cluster_route_impl::nobody_answered() {
    asking_for_map = false;
    denied = all_denied;
    const redis_refusal why{denied ? errc::denied : errc::unavailable,
                            "no node says where what is: " + said};
    if (!map) {
        tell({event_kind::down, why});
        if (denied) {
            for (const auto& [number, r] : std::exchange(waiting, {})) {
                r->timer.cancel();
                fail_later(r, errc::denied);
            }
            waiting_bytes = 0;
        }
    }
    map_timer_set = true;
    const auto wait = denied ? boot_clock::duration(denied_retry)
                             : boot_clock::duration(retry.wait(in_vain++, on.random()));
    map_timer = on.after(wait, [this] { ask_for_map(); });
}

void cluster_route_impl::adopt(cluster_map made) {
    asking_for_map = denied = false;
    in_vain = 0;
    for (unsigned slot = 0; map && slot < redis_slots && !is_another; ++slot) {
        if (!used.test(slot)) continue;
        const auto* const before = map->owner(slot);
        const auto* const now = made.owner(slot);
        is_another = before != nullptr && now != nullptr && *before != *now;
    }
    map = std::move(made);
    for (const auto& [text, node] : nodes) node->doubted = false;
    move_hearing();
    judge({});
    go_all();
    const bool open = std::any_of(waiting.begin(), waiting.end(), [this](const auto& one) {
        return !one.second->ask_at && map->owner(one.second->slot) == nullptr;
    });
    if (std::exchange(map_wanted_again, false) || open) want_map();
}

}  // namespace trinco::detail
