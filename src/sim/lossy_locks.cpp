#include "sim/lossy_locks.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "trinco/error.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;
using namespace detail;

namespace {

constexpr auto ask_again = 500ms;           // of a stream
constexpr auto silent_for = 3 * ask_again;  // after which the server forgets one
constexpr auto server_patience = 10s;
constexpr auto longest_reconnect = 200ms;

}  // namespace

void lock_service::run(unique_function<op(std::uint64_t)> start) {
    const auto n = next_number();
    running_.try_emplace(n);
    auto begun = start(n);
    // A completion comes later, never inside the call, so the place is still there.
    running_[n] = std::move(begun);
}

bool lock_service::subscribe(std::uint64_t stream, unique_function<op()> start) {
    const auto [at, fresh] = streams_.try_emplace(stream);
    at->second.silence = at_.after(silent_for, [self = weak_from_this(), stream] {
        if (const auto s = self.lock()) s->drop(stream);
    });
    if (fresh) at->second.inner = start();
    return fresh;
}

// One call that waits for its reply, whatever its type.
struct lossy_locks::pending_call {
    virtual ~pending_call() = default;
    virtual void fail(std::error_code error) = 0;
};

template <class T>
struct lossy_locks::call_state final : pending_call {
    completion<T> done;
    op limit;

    void finish(std::error_code error, T value) {
        limit.cancel();
        if (auto f = std::exchange(done, nullptr)) f(error, std::move(value));
    }
    void fail(std::error_code error) override { finish(error, T{}); }
};

// One of await, on_gone, observe. Events carry numbers; an older one that comes later is dropped.
struct lossy_locks::stream : std::enable_shared_from_this<stream> {
    node& client;
    node& server;
    network& net;
    std::weak_ptr<lock_service> service;
    std::uint64_t id = 0;
    bool over = false;
    op again;
    // Begins it at the inner store; runs on the server, perhaps more than once.
    std::function<op(lock_service&, const std::shared_ptr<stream>&)> start;
    std::function<void()> latest;   // on the server: tells the latest event once more
    std::function<void()> release;  // of the functions that it tells

    stream(node& c, const std::shared_ptr<lock_service>& s)
        : client(c), server(s->at()), net(s->net()), service(s), id(s->next_number()) {}

    void ask(const std::shared_ptr<stream>& self) {
        if (over) return;
        net.send(client, server, [self] {
            const auto s = self->service.lock();
            if (!s) return;
            const bool fresh = s->subscribe(self->id, [&] { return self->start(*s, self); });
            if (!fresh && self->latest) self->latest();
        });
        again = client.after(ask_again, [self] { self->ask(self); });
    }
    // From the server, told there: runs f at the client if the stream is still wanted.
    void tell(const std::shared_ptr<stream>& self, std::function<void()> f) {
        net.send(server, client, [self, f = std::move(f)] {
            if (!self->over) f();
        });
    }
    // On the server: tells it now, and again whenever the client asks again.
    void event(std::function<void()> f) {
        latest = [this, self = weak_from_this(), f = std::move(f)] { tell(self.lock(), f); };
        latest();
    }
    void drop_at_server() const {
        if (const auto s = service.lock()) s->drop(id);
    }
    [[nodiscard]] std::uint64_t event_number() const {
        const auto s = service.lock();
        return s ? s->next_number() : 0;
    }
    void close(const std::shared_ptr<stream>& self) {
        if (std::exchange(over, true)) return;
        again.cancel();
        release();
        net.send(client, server, [self] { self->drop_at_server(); });
    }
};

lossy_locks::lossy_locks(node& client, std::shared_ptr<lock_service> service)
    : client_(client), service_(std::move(service)), calls_(std::make_shared<calls>()) {
    breaks_ = service_->net().on_break(client_, service_->at(), [this] { broken(); });
}

lossy_locks::~lossy_locks() = default;

const lock_traits& lossy_locks::traits() const {
    return service_->inner().traits();
}

void lossy_locks::broken() {
    const auto reconnect = static_cast<std::int64_t>(
        client_.random() %
        static_cast<std::uint64_t>(boot_clock::duration(longest_reconnect).count()));
    connected_ = client_.now() + boot_clock::duration(reconnect);
    const auto cut_off = std::exchange(*calls_, {});
    for (const auto& [n, c] : cut_off) c->fail(errc::unknown_outcome);
}

template <class T, class Start>
op lossy_locks::call(deadline by, completion<T> done, Start start) {
    const auto c = std::make_shared<call_state<T>>();
    c->done = std::move(done);
    if (client_.now() < connected_ || client_.now() >= by) {
        client_.post([c] { c->fail(errc::unavailable); });
        return op([c] { c->done.reset(); });
    }
    const auto n = service_->next_number();
    (*calls_)[n] = c;
    const auto ended = [c, kept = calls_, n] { kept->erase(n); };
    c->limit = client_.at(by, [c, ended] {
        ended();
        c->fail(errc::unknown_outcome);
    });
    auto request = [c, ended, start, service = std::weak_ptr(service_), &to = client_] {
        const auto s = service.lock();
        if (!s) return;
        s->run([&](std::uint64_t running) {
            return start(s->inner(), s->at().now() + server_patience,
                         completion<T>([=, &to](std::error_code error, T value) {
                             const auto at = service.lock();
                             at->net().send(at->at(), to, [c, ended, error, value] {
                                 ended();
                                 c->finish(error, value);
                             });
                             at->finished(running);
                         }));
        });
    };
    service_->net().send(client_, service_->at(), std::move(request));
    return op([c, ended] {
        ended();
        c->limit.cancel();
        c->done.reset();
    });
}

op lossy_locks::open_stream(std::shared_ptr<stream> s) {
    s->ask(s);
    return op([s] { s->close(s); });
}

op lossy_locks::open(std::chrono::seconds ttl, std::string_view label, deadline by,
                     completion<lease> done) {
    return call(
        by, std::move(done),
        [ttl, label = std::string(label)](lock_store& at, deadline end, completion<lease> f) {
            return at.open(ttl, label, end, std::move(f));
        });
}

op lossy_locks::renew(std::string_view lease, deadline by, completion<std::chrono::seconds> done) {
    return call(by, std::move(done),
                [lease = std::string(lease)](lock_store& at, deadline end,
                                             completion<std::chrono::seconds> f) {
                    return at.renew(lease, end, std::move(f));
                });
}

// A request that came twice has two answers, of which nobody here knows the first.
op lossy_locks::revoke(std::string_view lease, deadline by, completion<ended_claims> done) {
    return call(
        by, std::move(done),
        [lease = std::string(lease)](lock_store& at, deadline end, completion<ended_claims> f) {
            return at.revoke(lease, end,
                             [f = std::move(f)](std::error_code error, ended_claims) mutable {
                                 f(error, std::nullopt);
                             });
        });
}

op lossy_locks::owned(std::string_view lease, deadline by, completion<std::vector<claim_id>> done) {
    return call(by, std::move(done),
                [lease = std::string(lease)](lock_store& at, deadline end,
                                             completion<std::vector<claim_id>> f) {
                    return at.owned(lease, end, std::move(f));
                });
}

op lossy_locks::enter(claim what, deadline by, completion<place> done) {
    return call(by, std::move(done),
                [what = std::move(what)](lock_store& at, deadline end, completion<place> f) {
                    return at.enter(what, end, std::move(f));
                });
}

op lossy_locks::await(std::string_view lease, claim_id id, unique_function<void(place)> moved,
                      completion<grant> done) {
    struct told {
        completion<grant> done;
        unique_function<void(place)> moved;
        std::uint64_t newest = 0;
    };
    const auto t = std::make_shared<told>();
    t->done = std::move(done);
    t->moved = std::move(moved);
    const auto s = std::make_shared<stream>(client_, service_);
    s->release = [t] {
        t->done.reset();
        t->moved.reset();
    };
    const bool places = static_cast<bool>(t->moved);
    s->start = [t, places, lease = std::string(lease), id](lock_service& at,
                                                           const std::shared_ptr<stream>& self) {
        unique_function<void(place)> on_place;
        if (places) {
            on_place = [t, self](place p) {
                self->event([t, p, n = self->event_number()] {
                    if (t->moved && std::exchange(t->newest, std::max(t->newest, n)) < n) {
                        t->moved(p);
                    }
                });
            };
        }
        return at.inner().await(lease, id, std::move(on_place),
                                [t, self](std::error_code error, grant g) {
                                    self->tell(self, [t, self, error, g] {
                                        auto f = std::exchange(t->done, nullptr);
                                        self->close(self);
                                        if (f) f(error, g);
                                    });
                                    // A repeated request finds the answer at the inner store again.
                                    self->drop_at_server();
                                });
    };
    return open_stream(s);
}

op lossy_locks::on_gone(std::string_view lease, claim_id id,
                        unique_function<void(std::error_code)> gone) {
    const auto t = std::make_shared<unique_function<void(std::error_code)>>(std::move(gone));
    const auto s = std::make_shared<stream>(client_, service_);
    s->release = [t] { t->reset(); };
    s->start = [t, lease = std::string(lease), id](lock_service& at,
                                                   const std::shared_ptr<stream>& self) {
        return at.inner().on_gone(lease, id, [t, self](std::error_code error) {
            self->tell(self, [t, self, error] {
                auto f = std::exchange(*t, nullptr);
                self->close(self);
                if (f) f(error);
            });
            self->drop_at_server();
        });
    };
    return open_stream(s);
}

op lossy_locks::verify(std::string_view lease, claim_id id, deadline by, completion<grant> done) {
    return call(
        by, std::move(done),
        [lease = std::string(lease), id](lock_store& at, deadline end, completion<grant> f) {
            return at.verify(lease, id, end, std::move(f));
        });
}

op lossy_locks::turns(std::string_view lease, claim_id id, deadline by,
                      completion<std::vector<bool>> done) {
    return call(by, std::move(done),
                [lease = std::string(lease), id](lock_store& at, deadline end,
                                                 completion<std::vector<bool>> f) {
                    return at.turns(lease, id, end, std::move(f));
                });
}

op lossy_locks::publish(std::string_view lease, claim_id id, std::string_view info, deadline by,
                        completion<int> done) {
    return call(by, std::move(done),
                [lease = std::string(lease), id, info = std::string(info)](
                    lock_store& at, deadline end, completion<int> f) {
                    return at.publish(lease, id, info, end, std::move(f));
                });
}

op lossy_locks::leave(std::string_view lease, claim_id id, deadline by, completion<int> done) {
    return call(by, std::move(done),
                [lease = std::string(lease), id](lock_store& at, deadline end, completion<int> f) {
                    return at.leave(lease, id, end, std::move(f));
                });
}

op lossy_locks::write(std::string_view lease, std::optional<claim_id> guard,
                      std::span<const change> changes, std::chrono::seconds keep, deadline by,
                      completion<std::uint64_t> done) {
    return call(by, std::move(done),
                [lease = std::string(lease), guard,
                 all = std::vector<change>(changes.begin(), changes.end()),
                 keep](lock_store& at, deadline end, completion<std::uint64_t> f) {
                    return at.write(lease, guard, all, keep, end, std::move(f));
                });
}

op lossy_locks::read(std::string_view key, deadline by, completion<std::optional<record>> done) {
    return call(by, std::move(done),
                [key = std::string(key)](lock_store& at, deadline end,
                                         completion<std::optional<record>> f) {
                    return at.read(key, end, std::move(f));
                });
}

op lossy_locks::scan(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                     completion<records> done) {
    return call(by, std::move(done),
                [prefix = std::string(prefix), from = std::string(from), rows](
                    lock_store& at, deadline end, completion<records> f) {
                    return at.scan(prefix, from, rows, end, std::move(f));
                });
}

op lossy_locks::list(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                     completion<entries> done) {
    return call(by, std::move(done),
                [prefix = std::string(prefix), from = std::string(from), rows](
                    lock_store& at, deadline end, completion<entries> f) {
                    return at.list(prefix, from, rows, end, std::move(f));
                });
}

op lossy_locks::evict(const entry& seen, bool now, std::string_view who, std::string_view why,
                      deadline by, completion<int> done) {
    return call(by, std::move(done),
                [seen, now, who = std::string(who), why = std::string(why)](
                    lock_store& at, deadline end, completion<int> f) {
                    return at.evict(seen, now, who, why, end, std::move(f));
                });
}

op lossy_locks::observe(std::string_view name, unique_function<void(std::optional<entry>)> seen) {
    struct told {
        unique_function<void(std::optional<entry>)> seen;
        std::uint64_t newest = 0;
    };
    const auto t = std::make_shared<told>();
    t->seen = std::move(seen);
    const auto s = std::make_shared<stream>(client_, service_);
    s->release = [t] { t->seen.reset(); };
    s->start = [t, name = std::string(name)](lock_service& at,
                                             const std::shared_ptr<stream>& self) {
        return at.inner().observe(name, [t, self](std::optional<entry> holder) {
            self->event([t, holder, n = self->event_number()] {
                if (t->seen && std::exchange(t->newest, std::max(t->newest, n)) < n) {
                    t->seen(holder);
                }
            });
        });
    };
    return open_stream(s);
}

op lossy_locks::stop(deadline, completion<int> done) {
    calls_->clear();
    const auto f = std::make_shared<completion<int>>(std::move(done));
    client_.post([f] {
        if (auto told = std::exchange(*f, nullptr)) told({}, 0);
    });
    return op([f] { f->reset(); });
}

}  // namespace trinco::sim
