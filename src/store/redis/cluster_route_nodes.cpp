#include <algorithm>
#include <set>

#include "store/redis/cluster_route_impl.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto ping_after = 5s;  // a peer that is gone shows within this and a second
constexpr auto idle_after = 60s;
constexpr auto sweep_every = 15s;
constexpr std::size_t most_nodes = 64;
constexpr std::size_t most_lives = 1'024;  // more than clusters have nodes

}  // namespace

cluster_route_impl::cluster_route_impl(loop& l, stream_factory& s, redis_target t,
                                       redis_route::on_event c)
    : on(l), streams(s), target(std::move(t)), changed(std::move(c)) {
    next_hearing = on.random() % 1'024;
}

redis_link_options cluster_route_impl::greeting() const {
    redis_link_options options;
    options.steps = login_steps(target.login, 0);
    options.steps.push_back(name_step());
    options.ping_after = ping_after;
    return options;
}

cluster_node& cluster_route_impl::node_at(const stream_address& where) {
    auto& place = nodes[text_of(where)];
    if (place) return *place;
    place = std::make_unique<cluster_node>();
    auto* const node = place.get();
    node->at = where;
    node->used = on.now();
    node->life = &life_at(where);
    auto options = greeting();
    options.keep_unsent = false;
    options.steps.push_back(life_step([of = node->life](std::string run_id) {
        of->is_another = of->life.is_another(std::move(run_id)) || of->is_another;
    }));
    node->link.emplace(on, streams, where, std::move(options),
                       [this, node](const redis_link_event& e) { node_changed(*node, e); });
    make_room();
    return *node;
}

void cluster_route_impl::node_changed(cluster_node& n, const redis_link_event& e) {
    n.serving = e.up;
    n.denied = !e.up && e.reason.error == errc::denied;
    n.why = e.reason.why;
    if (e.up) {
        is_another = std::exchange(n.life->is_another, false) || is_another;
        judge({});
        return go_all();
    }
    // Who was sent there asks the owner again.
    for (const auto& [number, r] : waiting) {
        if (r->ask_at && *r->ask_at == n.at) r->ask_at.reset();
    }
    if (map && owns_slots(n.at)) want_map();
    judge(e.reason);
    go_all();
}

bool cluster_route_impl::owns_slots(const stream_address& where) const {
    const auto& all = map->nodes();
    return std::find(all.begin(), all.end(), where) != all.end();
}

void cluster_route_impl::forget_idle_nodes() {
    sweeping = on.after(sweep_every, [this] { forget_idle_nodes(); });
    const auto before = on.now() - idle_after;
    std::size_t serving = 0;
    for (const auto& [text, node] : nodes) serving += node->serving ? 1 : 0;
    for (auto next = nodes.begin(); next != nodes.end();) {
        const auto one = next++;
        const auto& node = *one->second;
        if (node.in_flight > 0 || node.used > before) continue;
        if (node.serving && serving-- == 1) return;  // the last one keeps the way open
        retire(one);
    }
}

// Beyond the bound, those of addresses go where no node is that we know of.
cluster_life& cluster_route_impl::life_at(const stream_address& where) {
    if (lives.size() >= most_lives) {
        std::set<std::string> known;
        for (const auto& [text, node] : nodes) known.insert(text);
        if (map) {
            for (const auto& one : map->nodes()) known.insert(text_of(one));
        }
        std::erase_if(lives, [&](const auto& one) { return !known.contains(one.first); });
    }
    return lives[text_of(where)];
}

// Beyond the bound, the connection goes that was without use for longest.
void cluster_route_impl::make_room() {
    if (nodes.size() <= most_nodes) return;
    auto oldest = nodes.end();
    for (auto one = nodes.begin(); one != nodes.end(); ++one) {
        const bool is_new = one->second->used == on.now();
        if (one->second->in_flight > 0 || is_new) continue;
        if (oldest == nodes.end() || one->second->used < oldest->second->used) oldest = one;
    }
    if (oldest != nodes.end()) retire(oldest);
}

void cluster_route_impl::retire(std::map<std::string, std::unique_ptr<cluster_node>>::iterator n) {
    retired += n->second->link->traffic();
    nodes.erase(n);
}

// Tells what has become of the way as a whole.
void cluster_route_impl::judge(const redis_refusal& why) {
    const bool any = std::any_of(nodes.begin(), nodes.end(),
                                 [](const auto& one) { return one.second->serving; });
    const bool is_up = map && any;
    if (std::exchange(told_up, is_up) != is_up) {
        tell({is_up ? event_kind::up : event_kind::down, why});
    }
    if (is_up && std::exchange(is_another, false)) tell({event_kind::other_server, {}});
}

void cluster_route_impl::tell(route_event e) {
    later([e = std::move(e)](cluster_route_impl& self) { self.changed(e); });
}

// ---- the channel --------------------------------------------------------------------------------

void cluster_route_impl::listen(std::string name, redis_route::on_message h,
                                redis_route::may_wait wait) {
    channel = std::move(name);
    heard = std::move(h);
    heard_may_wait = std::move(wait);
    if (map) begin_hearing();
}

void cluster_route_impl::begin_hearing() {
    auto options = greeting();
    options.steps.push_back({{"SUBSCRIBE", channel}});
    options.may_wait = heard_may_wait;
    options.find = [this](deadline, unique_function<void(redis_found)> done) {
        return on.at(on.now(), [d = std::move(done), where = next_to_hear()]() mutable {
            d(std::move(where));
        });
    };
    hearing.emplace(
        on, streams, target.nodes.front(), std::move(options),
        [this](const redis_link_event& e) {
            tell({e.up ? event_kind::hearing : event_kind::deaf, e.reason});
        },
        [this](const resp_reply& message) {
            if (message.elements.size() == 3) heard(message.elements[2].text);
        });
}

// Another one than the last time, and one that serves where there is one.
stream_address cluster_route_impl::next_to_hear() {
    const auto& all = map->nodes();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& one = all[(next_hearing + i) % all.size()];
        const auto known = nodes.find(text_of(one));
        if (known == nodes.end() || !known->second->serving) continue;
        next_hearing = (next_hearing + i) % all.size() + 1;
        return one;
    }
    return all[next_hearing++ % all.size()];
}

// The map is another one.
void cluster_route_impl::move_hearing() {
    if (!heard) return;
    if (!hearing) return begin_hearing();
    if (hearing->up() && !owns_slots(hearing->where())) {
        hearing->reconnect({errc::unavailable, "the node owns no slots any more"});
    }
    hearing->wake();
}

// ---- the rest -----------------------------------------------------------------------------------

bool cluster_route_impl::up(std::string_view key) const {
    const auto* const owner = map ? map->owner(slot_of_key(key)) : nullptr;
    if (owner == nullptr) return false;
    const auto node = nodes.find(text_of(*owner));
    return node != nodes.end() && node->second->serving && !node->second->doubted;
}

bool cluster_route_impl::awaits() const {
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const auto& n) { return n.second->link->awaits(); });
}

route_traffic cluster_route_impl::traffic() const {
    auto all = retired;
    for (const auto& [text, node] : nodes) all += node->link->traffic();
    if (hearing) all += hearing->traffic();
    return {all, redirections};
}

void cluster_route_impl::close() {
    gone = true;
    map_timer.cancel();
    map_asking.cancel();
    sweeping.cancel();
    const auto dropped = std::exchange(waiting, {});
    for (const auto& [number, r] : dropped) r->timer.cancel();
    hearing.reset();
    nodes.clear();
}

}  // namespace trinco::detail
