#include "store/redis/cluster_route.hpp"

#include <algorithm>

#include "core/mutant.hpp"
#include "store/redis/cluster_route_impl.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_waiting = 10'000;
constexpr std::size_t most_waiting_bytes = 32 * 1024 * 1024;
constexpr unsigned quick_detours = 4;  // more of them in a row: nodes disagree, and need a moment
constexpr auto shortest_wait = 5ms;
constexpr auto wait_spread = 45ms;

class cluster_route final : public redis_route {
public:
    cluster_route(loop& on, stream_factory& streams, redis_target target, on_event changed)
        : impl_(std::make_shared<cluster_route_impl>(on, streams, std::move(target),
                                                     std::move(changed))) {
        impl_->ask_for_map();
        impl_->forget_idle_nodes();
    }
    ~cluster_route() override { impl_->close(); }

    op request(std::string_view key, std::string command, deadline by,
               completion<resp_reply> done) override {
        return impl_->request(key, std::move(command), by, std::move(done));
    }
    void mistrust(std::string_view key, redis_refusal why) override {
        impl_->mistrust(key, std::move(why));
    }
    void listen(std::string channel, on_message heard, may_wait wait) override {
        impl_->listen(std::move(channel), std::move(heard), std::move(wait));
    }
    bool up(std::string_view key) const noexcept override { return impl_->up(key); }
    bool awaits() const noexcept override { return impl_->awaits(); }
    route_traffic traffic() const noexcept override { return impl_->traffic(); }

private:
    std::shared_ptr<cluster_route_impl> impl_;
};

}  // namespace

op cluster_route_impl::request(std::string_view key, std::string command, deadline by,
                               completion<resp_reply> done) {
    const auto r = std::make_shared<cluster_request>();
    r->number = ++requests;
    r->command = std::move(command);
    r->slot = slot_of_key(key);
    r->by = by;
    r->done = std::move(done);
    used.set(r->slot);
    if (waiting.size() >= most_waiting || waiting_bytes + r->command.size() > most_waiting_bytes) {
        fail_later(r, errc::busy);
    } else if (denied && !map) {
        fail_later(r, errc::denied);
    } else {
        go(r);
        if (!map) hurry();
    }
    return op([weak = weak_from_this(), r] {
        if (const auto self = weak.lock()) self->drop(*r);
    });
}

// To the node that should have it, when that can take it; else it waits.
void cluster_route_impl::go(const request_ptr& r) {
    auto* const node = node_for(*r);
    if (node == nullptr) {
        wait(r);
        return want_map();
    }
    if ((node->serving && !node->doubted) || node->denied) return send(r, *node);
    wait(r);
    node->link->wake();
}

cluster_node* cluster_route_impl::node_for(const cluster_request& r) {
    const auto* where = r.ask_at ? &*r.ask_at : map ? map->owner(r.slot) : nullptr;
    return where == nullptr ? nullptr : &node_at(*where);
}

void cluster_route_impl::send(const request_ptr& r, cluster_node& to) {
    r->at = &to;
    ++to.in_flight;
    to.used = on.now();
    if (r->ask_at && !TRINCO_MUTANT("cluster_ask_without_asking")) {
        r->asking = to.link->request(resp_command(std::vector<std::string>{"ASKING"}), r->by,
                                     [](std::error_code, const resp_reply&) {});
    }
    r->ask_at.reset();
    r->sent =
        to.link->request(r->command, r->by, [this, r](std::error_code error, resp_reply reply) {
            answered(r, error, std::move(reply));
        });
}

void cluster_route_impl::answered(const request_ptr& r, std::error_code error, resp_reply reply) {
    const auto& from = r->at->at;
    const auto there = error ? std::optional<redirection>() : redirection_in(reply, from);
    --std::exchange(r->at, nullptr)->in_flight;
    // Not sent, and not too late: whoever owns the slot now gets it.
    if (error == errc::unavailable && on.now() < r->by) {
        if (TRINCO_MUTANT("cluster_unsent_is_given_up")) return finish(*r, error);
        return go(r);
    }
    if (there) return redirect(r, *there);
    if (reply.error_word() == "TRYAGAIN") return try_later(r);
    finish(*r, error, std::move(reply));
}

void cluster_route_impl::redirect(const request_ptr& r, const redirection& there) {
    ++redirections;
    if (!there.moved) {
        r->ask_at = there.to;
    } else if (map && !TRINCO_MUTANT("cluster_moved_is_not_learnt")) {
        const auto* before = map->owner(there.slot);
        if (before == nullptr || *before != there.to) {
            is_another = is_another || used.test(there.slot);
            map->set_owner(there.slot, there.to);
        }
        judge({});
        want_map();
    }
    if (++r->detours <= quick_detours) return go(r);
    try_later(r);
}

// Half of its keys are there and half here, or two nodes send us to each other.
void cluster_route_impl::try_later(const request_ptr& r) {
    const auto spread = unit_share(on.random()) * std::chrono::duration<double>(wait_spread);
    const auto when =
        on.now() + shortest_wait + std::chrono::duration_cast<boot_clock::duration>(spread);
    r->timer = on.at(std::min(when, r->by), [weak = weak_from_this(), r] {
        const auto self = weak.lock();
        if (!self || self->gone) return;
        if (self->on.now() >= r->by) return self->finish(*r, errc::unavailable);
        self->go(r);
    });
}

void cluster_route_impl::wait(const request_ptr& r) {
    waiting_bytes += r->command.size();
    waiting.emplace(r->number, r);
    r->timer = on.at(r->by, [this, r] {
        stop_waiting(*r);
        finish(*r, errc::unavailable);
    });
}

void cluster_route_impl::stop_waiting(cluster_request& r) {
    r.timer.cancel();
    if (waiting.erase(r.number) > 0) waiting_bytes -= r.command.size();
}

void cluster_route_impl::go_all() {
    for (auto next = waiting.begin(); next != waiting.end();) {
        const auto r = next->second;
        ++next;
        auto* const node = node_for(*r);
        if (node == nullptr || !((node->serving && !node->doubted) || node->denied)) continue;
        stop_waiting(*r);
        send(r, *node);
    }
}

// The route may be gone afterwards.
void cluster_route_impl::finish(cluster_request& r, std::error_code error, resp_reply reply) {
    r.timer.cancel();
    auto done = std::move(r.done);
    if (done) done(error, std::move(reply));
}

void cluster_route_impl::fail_later(const request_ptr& r, std::error_code error) {
    later([r, error](cluster_route_impl& self) { self.finish(*r, error); });
}

void cluster_route_impl::drop(cluster_request& r) {
    const auto dropped = std::move(r.done);
    stop_waiting(r);
    if (auto* const at = std::exchange(r.at, nullptr)) --at->in_flight;
    r.sent.cancel();
    r.asking.cancel();
}

std::unique_ptr<redis_route> make_cluster_route(loop& on, stream_factory& streams,
                                                redis_target target,
                                                redis_route::on_event changed) {
    return std::make_unique<cluster_route>(on, streams, std::move(target), std::move(changed));
}

}  // namespace trinco::detail
