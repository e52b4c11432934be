#include "sim/simulated_etcd_client.hpp"

#include <algorithm>

#include "trinco/error.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;
using namespace detail;
using namespace detail::etcd;

namespace {

constexpr auto retry_wait = 100ms;
constexpr auto poke_every = 500ms;
constexpr auto silent_for = 3 * poke_every;
constexpr std::size_t message_most = 4 * 1'024 * 1'024;

// On the wire, roughly.
std::size_t size_of(const txn_reply& reply) {
    constexpr std::size_t numbers = 40;
    std::size_t n = 0;
    for (const auto& one : reply.replies) {
        for (const auto& kv : one.kvs) n += kv.key.size() + kv.value.size() + numbers;
    }
    return n;
}

}  // namespace

struct simulated_etcd_client::pending {
    virtual ~pending() = default;
    virtual void broken(const node* member) = 0;
};

struct simulated_etcd_client::shared {
    node& client;
    simulated_etcd& cluster;
    std::size_t current = 0;  // endpoint
    std::uint64_t next_id = 1;
    std::map<std::uint64_t, std::shared_ptr<pending>> calls;
    std::map<std::uint64_t, std::shared_ptr<open_watch>> watches;

    [[nodiscard]] node& endpoint() const { return *cluster.members()[current]; }
    void leave(const node* member) {
        if (member == &endpoint()) current = (current + 1) % cluster.members().size();
    }
};

// One request and its attempts.
template <class T>
struct simulated_etcd_client::call final : pending, std::enable_shared_from_this<call<T>> {
    std::weak_ptr<shared> owner;
    std::uint64_t id = 0;
    bool repeatable = false;
    deadline by;
    completion<T> done;
    std::function<simulated_etcd::answer<T>(simulated_etcd&)> carry_out;
    std::uint64_t attempt = 0;
    bool under_way = false;  // an attempt that may still be carried out
    const node* at = nullptr;
    op limit;
    op again;

    void finish(std::error_code error, T value) {
        if (const auto s = owner.lock()) {
            const auto self = this->shared_from_this();
            limit.cancel();
            again.cancel();
            s->calls.erase(id);
            if (auto f = std::exchange(done, nullptr)) f(error, std::move(value));
        }
    }
    void over_time() {
        const bool unknown = under_way && !repeatable;
        finish(unknown ? errc::unknown_outcome : errc::unavailable, T{});
    }
    void send() {
        const auto s = owner.lock();
        if (!s) return;
        auto& member = s->endpoint();
        at = &member;
        under_way = true;
        const auto number = s->cluster.next_number();
        s->cluster.net().send(
            s->client, member,
            [to = this->shared_from_this(), &cluster = s->cluster, &client = s->client, &member,
             number, n = ++attempt] {
                if (cluster.seen_before(number)) return;
                const auto a = cluster.has_leader() ? to->carry_out(cluster)
                                                    : simulated_etcd::answer<T>{errc::unavailable};
                cluster.net().send(member, client, [to, n, a] { to->answered(n, a); });
            });
        const auto half = (by - s->client.now()) / 2;
        again = s->client.after(std::max<boot_clock::duration>(half, 1ms), [this] { slow(); });
    }
    // Half of the time has passed.
    void slow() {
        const auto s = owner.lock();
        if (!s) return;
        s->leave(at);
        if (repeatable && s->client.now() + 5ms < by) send();
    }
    void answered(std::uint64_t n, const simulated_etcd::answer<T>& a) {
        const auto s = owner.lock();
        if (!done || !s) return;
        if (a.error != errc::unavailable) return finish(a.error, a.value);
        if (n != attempt) return;
        under_way = false;
        s->leave(at);
        again = s->client.after(retry_wait, [this] { send(); });
    }
    void broken(const node* member) override {
        if (at != member || !under_way) return;
        if (repeatable) return send();
        finish(errc::unknown_outcome, T{});
    }
};

// One watch at both ends. The client counts what it has been told; the member sends on from what
// the client last said, so that a lost message is made up for at the next poke.
struct simulated_etcd_client::open_watch final : etcd_listener,
                                                 std::enable_shared_from_this<open_watch> {
    shared& owner;
    simulated_etcd& cluster;
    node& client;
    watch_request what;
    on_news news;
    on_over over;
    std::int64_t next = 0;      // of the client; 0: from the first contact on
    std::int64_t started = 0;   // what that was
    std::int64_t to_send = -1;  // of the member; -1: it does not know of the watch
    node* member = nullptr;
    boot_clock::time_point heard;
    bool dropped = false;
    op poking;

    open_watch(shared& s, watch_request w)
        : owner(s), cluster(s.cluster), client(s.client), what(std::move(w)) {
        next = what.from_revision;
        heard = client.now();
        cluster.listen(*this);
    }
    open_watch(const open_watch&) = delete;
    open_watch& operator=(const open_watch&) = delete;
    ~open_watch() override { drop(); }

    // Its functions stay, since it may be in one of them.
    void drop() {
        if (std::exchange(dropped, true)) return;
        poking.cancel();
        cluster.forget(*this);
    }

    void poke() {
        if (member == nullptr || client.now() - heard > silent_for) {
            if (member != nullptr) owner.leave(member);
            member = &owner.endpoint();
            heard = client.now();
        }
        poking = client.after(poke_every, [this] { poke(); });
        cluster.net().send(client, *member, [weak = weak_from_this(), asks = next, to = member] {
            if (const auto w = weak.lock()) w->poked(to, asks);
        });
    }
    // At the member.
    void poked(const node* at, std::int64_t asks) {
        if (at != member || !cluster.has_leader()) return;
        if (asks == 0 && started == 0) started = cluster.revision() + 1;
        to_send = asks != 0 ? asks : started;
        send(true);
    }
    void changed() override {
        if (to_send < 0 || member == nullptr) return;
        member->post([weak = weak_from_this()] {
            if (const auto w = weak.lock()) w->send(false);
        });
    }
    void send(bool always) {
        auto told = cluster.news(what, to_send);
        if (told && told->events.empty() && !always) return;
        const auto first = to_send;
        if (told) to_send = std::max(to_send, told->revision + 1);
        cluster.net().send(*member, client,
                           [weak = weak_from_this(), first, told = std::move(told)] {
                               if (const auto w = weak.lock()) w->told(first, told);
                           });
    }
    // At the client.
    void told(std::int64_t first, std::optional<watch_news> all) {
        if (!news || dropped) return;
        heard = client.now();
        if (!all) {
            if (auto f = std::exchange(over, nullptr)) {
                news = nullptr;
                f(errc::conflict);
            }
            return;
        }
        if (next == 0) next = first;
        if (first > next) return;  // one before it was lost
        std::erase_if(all->events, [&](const auto& e) { return e.now.mod_revision < next; });
        next = std::max(next, all->revision + 1);
        if (!all->events.empty()) news(*all);
    }
};

simulated_etcd_client::simulated_etcd_client(node& client, simulated_etcd& cluster)
    : shared_(std::make_shared<shared>(shared{client, cluster, 0, 1, {}, {}})) {
    for (auto* m : cluster.members()) {
        breaks_.push_back(cluster.net().on_break(client, *m, [s = shared_.get(), m] {
            const auto all = s->calls;
            for (const auto& [id, one] : all) one->broken(m);
        }));
    }
}

simulated_etcd_client::~simulated_etcd_client() = default;

std::size_t simulated_etcd_client::watches() const noexcept {
    return shared_->watches.size();
}

template <class T>
op simulated_etcd_client::ask(bool repeatable, deadline by, completion<T> done,
                              std::function<simulated_etcd::answer<T>(simulated_etcd&)> carry_out) {
    auto c = std::make_shared<call<T>>();
    c->owner = shared_;
    c->id = shared_->next_id++;
    c->repeatable = repeatable;
    c->by = by;
    c->done = std::move(done);
    c->carry_out = std::move(carry_out);
    c->limit = shared_->client.at(by, [c = c.get()] { c->over_time(); });
    shared_->calls.emplace(c->id, c);
    c->send();
    return op([weak = std::weak_ptr<call<T>>(c)] {
        const auto dropped = weak.lock();
        if (!dropped) return;
        const auto unused = std::exchange(dropped->done, nullptr);
        dropped->limit.cancel();
        dropped->again.cancel();
        if (const auto s = dropped->owner.lock()) s->calls.erase(dropped->id);
    });
}

op simulated_etcd_client::txn(const txn_request& what, deadline by, completion<txn_reply> done) {
    return ask<txn_reply>(what.reads_only(), by, std::move(done), [what](simulated_etcd& at) {
        auto a = at.txn(what);
        if (size_of(a.value) <= message_most) return a;
        // It was carried out, and the answer cannot be taken.
        return simulated_etcd::answer<txn_reply>{
            what.reads_only() ? errc::busy : errc::unknown_outcome, {}};
    });
}

op simulated_etcd_client::grant(std::chrono::seconds ttl, deadline by,
                                completion<lease_reply> done) {
    return ask<lease_reply>(false, by, std::move(done),
                            [ttl](simulated_etcd& at) { return at.grant(ttl); });
}

op simulated_etcd_client::revoke(std::int64_t lease, deadline by, completion<int> done) {
    return ask<int>(true, by, std::move(done), [lease](simulated_etcd& at) {
        at.revoke(lease);
        return simulated_etcd::answer<int>{};
    });
}

op simulated_etcd_client::keep_alive(std::int64_t lease, deadline by,
                                     completion<std::chrono::seconds> done) {
    return ask<std::chrono::seconds>(true, by, std::move(done),
                                     [lease](simulated_etcd& at) { return at.keep_alive(lease); });
}

op simulated_etcd_client::facts(std::int64_t lease, bool with_keys, deadline by,
                                completion<lease_facts> done) {
    return ask<lease_facts>(true, by, std::move(done), [lease, with_keys](simulated_etcd& at) {
        return simulated_etcd::answer<lease_facts>{{}, at.facts(lease, with_keys)};
    });
}

op simulated_etcd_client::watch(const watch_request& what, on_news news, on_over over) {
    const auto w = std::make_shared<open_watch>(*shared_, what);
    w->news = std::move(news);
    w->over = std::move(over);
    const auto id = shared_->next_id++;
    shared_->watches.emplace(id, w);
    w->poke();
    return op([s = std::weak_ptr<shared>(shared_), id] {
        const auto owner = s.lock();
        if (!owner) return;
        const auto gone = owner->watches.find(id);
        if (gone == owner->watches.end()) return;
        gone->second->drop();
        owner->client.post([w = gone->second] {});
        owner->watches.erase(gone);
    });
}

op simulated_etcd_client::status(deadline by, completion<std::vector<server_status>> done) {
    return ask<std::vector<server_status>>(true, by, std::move(done), [](simulated_etcd& at) {
        simulated_etcd::answer<std::vector<server_status>> out;
        for (std::size_t i = 0; i < at.members().size(); ++i) {
            server_status one;
            one.endpoint = at.members()[i]->name();
            one.version = "3.5.0";
            one.member = i + 1;
            one.leader = 1;
            one.term = 1;
            out.value.push_back(std::move(one));
        }
        return out;
    });
}

op simulated_etcd_client::members(deadline by, completion<std::vector<member>> done) {
    return ask<std::vector<member>>(true, by, std::move(done), [](simulated_etcd& at) {
        simulated_etcd::answer<std::vector<member>> out;
        for (std::size_t i = 0; i < at.members().size(); ++i) {
            out.value.push_back({i + 1, at.members()[i]->name(), {}, false});
        }
        return out;
    });
}

op simulated_etcd_client::stop(deadline, completion<int> done) {
    shared_->watches.clear();
    shared_->calls.clear();
    return shared_->client.at(shared_->client.now(),
                              [done = std::move(done)]() mutable { done({}, 0); });
}

}  // namespace trinco::sim
