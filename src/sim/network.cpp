#include "sim/network.hpp"

#include <algorithm>
#include <functional>

namespace trinco::sim {

network::link network::pair_of(const node& a, const node& b) noexcept {
    return std::less<>()(&a, &b) ? link{&a, &b} : link{&b, &a};
}

void network::send(node& from, node& to, unique_function<void()> deliver) {
    if (!from.alive()) return;
    ++sent_;
    const auto m =
        std::make_shared<message>(message{from, to, connection(from, to), std::move(deliver)});
    const bool twice = world_.chance(faults_.p_duplicate);
    deliver_one(m);
    if (twice) {
        ++duplicated_;
        deliver_one(m);
    }
}

void network::deliver_one(const std::shared_ptr<message>& m) {
    if (world_.chance(faults_.p_drop)) {
        ++dropped_;
        return;
    }
    auto delay = world_.between(faults_.delay_min, faults_.delay_max);
    if (world_.chance(faults_.p_slow)) delay = world_.between(faults_.delay_max, faults_.slow_max);
    world_.schedule(delay, [this, m] { arrive(m); });
}

void network::arrive(std::shared_ptr<message> m) {
    const link way{&m->from, &m->to};
    if (cut_.contains(way) || connection(m->from, m->to) != m->sent_on) {
        ++dropped_;
        return;
    }
    if (const auto held = clogged_.find(way);
        held != clogged_.end() && held->second > world_.now()) {
        world_.schedule(held->second - world_.now(), [this, m = std::move(m)] { arrive(m); });
        return;
    }
    // It lies in the receiver's buffer until the node runs; a connection that breaks takes it
    // along.
    auto& to = m->to;
    auto deliver = [this, m = std::move(m)] {
        if (connection(m->from, m->to) == m->sent_on) m->deliver();
    };
    if (to.paused() && world_.chance(0.5)) {
        to.post_first(std::move(deliver));
    } else {
        to.post(std::move(deliver));
    }
}

void network::cut(const node& from, const node& to) {
    cut_[{&from, &to}] = true;
}

void network::partition(const node& a, const node& b) {
    cut(a, b);
    cut(b, a);
}

void network::restore(const node& from, const node& to) {
    cut_.erase({&from, &to});
    clogged_.erase({&from, &to});
}

void network::clog(const node& from, const node& to, boot_clock::time_point until) {
    auto& held = clogged_[{&from, &to}];
    held = std::max(held, until);
}

void network::heal() {
    cut_.clear();
    clogged_.clear();
    net_faults calm;
    calm.delay_min = faults_.delay_min;
    calm.delay_max = faults_.delay_min + (faults_.delay_max - faults_.delay_min) / 4;
    faults_ = calm;
}

void network::break_connections(const node& of) {
    ++node_breaks_[&of];
    tell(of, nullptr);
}

void network::break_connections(const node& a, const node& b) {
    ++pair_breaks_[pair_of(a, b)];
    tell(a, &b);
}

void network::tell(const node& a, const node* b) {
    const auto concerns = [&](const node* x, const node* y) {
        return x == &a && (b == nullptr || y == b);
    };
    for (const auto& [number, one] : listeners_) {
        if (!concerns(one.at, one.peer) && !concerns(one.peer, one.at)) continue;
        one.at->post([told = std::weak_ptr<unique_function<void()>>(one.told)] {
            if (const auto f = told.lock()) (*f)();
        });
    }
}

op network::on_break(node& at, const node& peer, unique_function<void()> told) {
    const auto number = next_listener_++;
    listeners_.emplace(
        number, listener{&at, &peer, std::make_shared<unique_function<void()>>(std::move(told))});
    return op([alive = std::weak_ptr<network*>(self_), number] {
        if (const auto net = alive.lock()) (*net)->listeners_.erase(number);
    });
}

std::uint64_t network::connection(const node& a, const node& b) const {
    const auto of = [](const auto& where, const auto& key) {
        const auto found = where.find(key);
        return found == where.end() ? std::uint64_t{0} : found->second;
    };
    return of(pair_breaks_, pair_of(a, b)) + of(node_breaks_, &a) + of(node_breaks_, &b);
}

}  // namespace trinco::sim
