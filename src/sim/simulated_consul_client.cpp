#include "sim/simulated_consul_client.hpp"

#include <algorithm>

#include "trinco/error.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;
using namespace detail;
using namespace detail::consul;

namespace {

constexpr auto retry_wait = 100ms;
constexpr auto poke_every = 500ms;
constexpr auto silent_for = 3 * poke_every;
constexpr std::size_t message_most = 4 * 1'024 * 1'024;

// On the wire, roughly.
std::size_t size_of(const std::vector<key_value>& rows) {
    constexpr std::size_t numbers = 150;
    std::size_t n = 0;
    for (const auto& kv : rows) n += kv.key.size() + kv.value.size() * 4 / 3 + numbers;
    return n;
}

template <class T>
simulated_consul::answer<T> bounded(simulated_consul::answer<T> a, bool reads_only) {
    if (size_of(a.value.rows) <= message_most) return a;
    // It was carried out, and the answer cannot be taken.
    return {reads_only ? errc::busy : errc::unknown_outcome, {}};
}

}  // namespace

struct simulated_consul_client::pending {
    virtual ~pending() = default;
    virtual void broken(const node* server) = 0;
};

struct simulated_consul_client::shared {
    node& client;
    simulated_consul& cluster;
    std::size_t current = 0;  // address
    std::uint64_t next_id = 1;
    std::map<std::uint64_t, std::shared_ptr<pending>> calls;
    std::map<std::uint64_t, std::shared_ptr<open_watch>> watches;

    [[nodiscard]] node& address() const { return *cluster.servers()[current]; }
    void leave(const node* server) {
        if (server == &address()) current = (current + 1) % cluster.servers().size();
    }
};

// One request and its attempts.
template <class T>
struct simulated_consul_client::call final : pending, std::enable_shared_from_this<call<T>> {
    std::weak_ptr<shared> owner;
    std::uint64_t id = 0;
    bool repeatable = false;
    deadline by;
    completion<T> done;
    std::function<simulated_consul::answer<T>(simulated_consul&)> carry_out;
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
        auto& server = s->address();
        at = &server;
        under_way = true;
        const auto number = s->cluster.next_number();
        s->cluster.net().send(
            s->client, server,
            [to = this->shared_from_this(), &cluster = s->cluster, &client = s->client, &server,
             number, n = ++attempt] {
                if (cluster.seen_before(number)) return;
                const auto a = cluster.has_leader()
                                   ? to->carry_out(cluster)
                                   : simulated_consul::answer<T>{errc::unavailable};
                cluster.net().send(server, client, [to, n, a] { to->answered(n, a); });
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
    void answered(std::uint64_t n, const simulated_consul::answer<T>& a) {
        const auto s = owner.lock();
        if (!done || !s) return;
        if (a.error != errc::unavailable) return finish(a.error, a.value);
        if (n != attempt) return;
        under_way = false;
        s->leave(at);
        again = s->client.after(retry_wait, [this] { send(); });
    }
    void broken(const node* server) override {
        if (at != server || !under_way) return;
        if (repeatable) return send();
        finish(errc::unknown_outcome, T{});
    }
};

// One watch at both ends. The server answers when what it reads is not what it told last, and to
// each poke, which is what makes up for a lost message; the client tells what is new to it.
struct simulated_consul_client::open_watch final : consul_listener,
                                                   std::enable_shared_from_this<open_watch> {
    shared& owner;
    simulated_consul& cluster;
    node& client;
    read_request what;
    on_news news;
    on_over over;
    std::uint64_t sent = 0;  // answers of the server
    std::optional<std::vector<key_value>> told_last;
    boot_clock::time_point deaf_until{};
    std::vector<key_value> heard_before;  // all that it hears until then
    std::uint64_t received = 0;           // the latest of them at the client
    std::optional<std::vector<key_value>> known;
    node* server = nullptr;
    boot_clock::time_point heard;
    bool dropped = false;
    op poking;

    open_watch(shared& s, read_request w)
        : owner(s), cluster(s.cluster), client(s.client), what(std::move(w)) {
        heard = client.now();
        cluster.listen(*this);
    }
    open_watch(const open_watch&) = delete;
    open_watch& operator=(const open_watch&) = delete;
    ~open_watch() override { drop(); }

    // Its function stays, since it may be in it.
    void drop() {
        if (std::exchange(dropped, true)) return;
        poking.cancel();
        cluster.forget(*this);
    }

    void poke() {
        if (server == nullptr || client.now() - heard > silent_for) {
            if (server != nullptr) owner.leave(server);
            server = &owner.address();
            told_last.reset();
            heard = client.now();
        }
        poking = client.after(poke_every, [this] { poke(); });
        cluster.net().send(client, *server, [weak = weak_from_this(), to = server] {
            const auto w = weak.lock();
            if (w && to == w->server && w->cluster.has_leader()) w->answer(true);
        });
    }
    void changed() override {
        if (!told_last || server == nullptr) return;
        server->post([weak = weak_from_this()] {
            const auto w = weak.lock();
            if (w && w->cluster.has_leader()) w->answer(false);
        });
    }
    // One that was told nothing yet asks without an index, and is answered at once.
    void deafen(boot_clock::time_point until) override {
        if (!told_last) return;
        if (deaf_until <= client.now()) heard_before = *told_last;
        deaf_until = until;
    }
    // At the server.
    void answer(bool always) {
        if (dropped) return;
        auto [error, state] = cluster.read(what);
        if (error) return refuse(error);
        if (client.now() < deaf_until) state.rows = heard_before;
        if (!always && told_last == state.rows) return;
        told_last = state.rows;
        cluster.net().send(*server, client,
                           [weak = weak_from_this(), n = ++sent, state = std::move(state)] {
                               if (const auto w = weak.lock()) w->take(n, state);
                           });
    }
    void refuse(std::error_code why) {
        cluster.net().send(*server, client, [weak = weak_from_this(), why] {
            const auto w = weak.lock();
            if (!w || w->dropped) return;
            w->drop();
            w->over(why);
        });
    }
    // At the client.
    void take(std::uint64_t n, const read_reply& state) {
        if (dropped || n <= received) return;
        received = n;
        heard = client.now();
        if (known == state.rows) return;
        known = state.rows;
        news(state);
    }
};

simulated_consul_client::simulated_consul_client(node& client, simulated_consul& cluster)
    : shared_(std::make_shared<shared>(shared{client, cluster, 0, 1, {}, {}})) {
    for (auto* m : cluster.servers()) {
        breaks_.push_back(cluster.net().on_break(client, *m, [s = shared_.get(), m] {
            const auto all = s->calls;
            for (const auto& [id, one] : all) one->broken(m);
        }));
    }
}

simulated_consul_client::~simulated_consul_client() = default;

std::size_t simulated_consul_client::watches() const noexcept {
    return shared_->watches.size();
}

template <class T>
op simulated_consul_client::ask(
    bool repeatable, deadline by, completion<T> done,
    std::function<simulated_consul::answer<T>(simulated_consul&)> carry_out) {
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

op simulated_consul_client::txn(const txn_request& what, deadline by, completion<txn_reply> done) {
    return ask<txn_reply>(what.reads_only(), by, std::move(done), [what](simulated_consul& at) {
        return bounded(at.txn(what), what.reads_only());
    });
}

op simulated_consul_client::read(const read_request& what, deadline by,
                                 completion<read_reply> done) {
    return ask<read_reply>(true, by, std::move(done),
                           [what](simulated_consul& at) { return bounded(at.read(what), true); });
}

op simulated_consul_client::keys(std::string_view prefix, deadline by,
                                 completion<std::vector<std::string>> done) {
    return ask<std::vector<std::string>>(
        true, by, std::move(done), [prefix = std::string(prefix)](simulated_consul& at) {
            return simulated_consul::answer<std::vector<std::string>>{{}, at.keys(prefix)};
        });
}

op simulated_consul_client::create(const session_request& what, deadline by,
                                   completion<std::string> done) {
    return ask<std::string>(false, by, std::move(done),
                            [what](simulated_consul& at) { return at.create(what); });
}

op simulated_consul_client::renew(std::string_view session, deadline by,
                                  completion<std::chrono::seconds> done) {
    return ask<std::chrono::seconds>(
        true, by, std::move(done),
        [id = std::string(session)](simulated_consul& at) { return at.renew(id); });
}

op simulated_consul_client::destroy(std::string_view session, deadline by, completion<int> done) {
    return ask<int>(true, by, std::move(done), [id = std::string(session)](simulated_consul& at) {
        at.destroy(id);
        return simulated_consul::answer<int>{};
    });
}

op simulated_consul_client::facts(std::string_view session, deadline by,
                                  completion<std::optional<session_facts>> done) {
    using value = std::optional<session_facts>;
    return ask<value>(true, by, std::move(done), [id = std::string(session)](simulated_consul& at) {
        return simulated_consul::answer<value>{{}, at.facts(id)};
    });
}

op simulated_consul_client::sessions(deadline by, completion<std::vector<session_facts>> done) {
    return ask<std::vector<session_facts>>(true, by, std::move(done), [](simulated_consul& at) {
        return simulated_consul::answer<std::vector<session_facts>>{{}, at.sessions()};
    });
}

op simulated_consul_client::watch(const read_request& what, on_news news, on_over over) {
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

op simulated_consul_client::status(deadline by, completion<std::vector<server_status>> done) {
    return ask<std::vector<server_status>>(true, by, std::move(done), [](simulated_consul& at) {
        simulated_consul::answer<std::vector<server_status>> out;
        for (const auto* one : at.servers()) {
            server_status s;
            s.address = one->name();
            s.node = one->name();
            s.version = "1.14.11";
            s.datacenter = "dc1";
            s.server = true;
            s.leader = at.servers().front()->name();
            s.session_ttl_min = std::chrono::seconds(10);
            out.value.push_back(std::move(s));
        }
        return out;
    });
}

op simulated_consul_client::stop(deadline, completion<int> done) {
    shared_->watches.clear();
    shared_->calls.clear();
    return shared_->client.at(shared_->client.now(),
                              [done = std::move(done)]() mutable { done({}, 0); });
}

}  // namespace trinco::sim
