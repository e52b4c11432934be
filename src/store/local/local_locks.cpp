#include "store/local/local_locks.hpp"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "trinco/error.hpp"
#include "trinco/store.hpp"

namespace trinco::detail {
namespace {

using kind = local_job::kind;

// Empty when the kernel does not say: then no pid of another process means anything here.
std::string own_pid_space() {
    std::error_code error;
    return std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

std::shared_ptr<local_lives> lives_beside(const local_worker& worker) {
    try {
        return std::make_shared<local_lives>(worker.file() + "-live");
    } catch (const std::system_error& e) {
        throw open_error(errc::denied,
                         std::string("the store's locks cannot be used: ") + e.what());
    }
}

// Carried out though nobody waits for it.
template <class F>
class told_job final : public local_job {
public:
    told_job(kind k, F request) : local_job(k), request_(std::move(request)) {}
    void run(local_file& in, local_round& after) override { request_(in, after); }
    void finish(std::error_code) noexcept override {}

private:
    F request_;
};

}  // namespace

local_locks::local_locks(loop& on, std::shared_ptr<local_worker> worker,
                         std::function<bool()> is_run_here)
    : worker_(std::move(worker)),
      outlet_(std::make_shared<local_outlet>(on)),
      calls_(std::make_shared<local_calls>(on, worker_, outlet_, std::move(is_run_here))),
      lives_(lives_beside(*worker_)),
      epoch_(worker_->epoch()),
      self_{worker_->socket(), ::getpid(), own_pid_space()},
      listeners_(std::make_shared<lock_listeners>()),
      watch_(std::make_shared<local_lock_watch>(outlet_, listeners_, lives_, self_)) {
    worker_->attach(watch_);
    let_it_serve(on);
}

// Who has the loop run for longer wants notices, too.
void local_locks::let_it_serve(loop& on) {
    if (worker_->serves()) return;
    serve_ = on.after(local_worker::moment, [this, &on] {
        if (!worker_->serve()) let_it_serve(on);
    });
}

local_locks::~local_locks() {
    watch_->remove_all();
    outlet_->close();
    if (!lives_->own().empty()) {
        // The kernel says so to everybody, at once; the rows go as soon as they can.
        lives_->drop_all();
        tell_worker(kind::write,
                    [socket = self_.socket](local_queues& q) { q.end_all_of(socket); });
    }
}

int local_locks::live_descriptor(std::string_view lease) const {
    const auto dash = lease.find('-');
    if (dash == std::string_view::npos || lease.substr(0, dash) != std::to_string(epoch_))
        return -1;
    std::int64_t session = 0;
    const auto* const end = lease.data() + lease.size();
    if (std::from_chars(lease.data() + dash + 1, end, session).ptr != end) return -1;
    return lives_->descriptor_of(session);
}

// `request(queues, answer)` in a transaction.
template <class T, class F>
op local_locks::ask(local_job::kind needs, deadline by, completion<T> done, F request) {
    return calls_->start(needs, by, std::move(done),
                         [lives = lives_, self = self_, request = std::move(request)](
                             local_file& in, local_round& after, T& answer) {
                             local_queues q(in, after, lives, self);
                             return request(q, answer);
                         });
}

template <class F>
void local_locks::tell_worker(local_job::kind needs, F request) {
    auto f = [lives = lives_, self = self_, request = std::move(request)](local_file& in,
                                                                          local_round& after) {
        local_queues q(in, after, lives, self);
        request(q);
        after.look = true;
    };
    worker_->submit(std::make_shared<told_job<decltype(f)>>(needs, std::move(f)));
}

op local_locks::open(std::chrono::seconds ttl, std::string_view label, deadline by,
                     completion<lease> done) {
    auto told = [ahead = ahead_, done = std::move(done)](std::error_code error, opened o) mutable {
        *ahead = std::move(o.first);
        done(error, std::move(o.made));
    };
    return ask<opened>(kind::write, by, std::move(told),
                       [ttl, label = std::string(label), first = std::exchange(expected_, {})](
                           local_queues& q, opened& o) {
                           auto r = q.open(ttl, label);
                           if (r.error) return r.error;
                           o.made = std::move(r.value);
                           if (!first) return r.error;
                           o.first.emplace(entered_ahead{*first, {}, {}});
                           o.first->what.lease = o.made.id;
                           o.first->error = enter(q, o.first->what, o.first->at);
                           return r.error;
                       });
}

// Whoever asks next has another file, and may be granted what is held here. A session asks for what
// hangs on its lease as soon as it is renewed: the renewal's transaction knows, and one of its own
// would cost waiting processes most of what they cost.
op local_locks::renew(std::string_view lease, deadline by, completion<std::chrono::seconds> done) {
    using renewal = local_queues::renewal;
    auto told = [worker = worker_, account = account_, lease = std::string(lease),
                 done = std::move(done)](std::error_code error, renewal r) mutable {
        if (error == errc::unavailable && worker->is_replaced()) error = errc::lost;
        if (!error) account->emplace(fresh_account{std::move(lease), std::move(r.owned)});
        done(error, error ? std::chrono::seconds(0) : r.ttl);
        account->reset();
    };
    return ask(kind::write, by, completion<renewal>(std::move(told)),
               [lease = std::string(lease)](local_queues& q, renewal& answer) {
                   auto r = q.renew(lease);
                   answer = std::move(r.value);
                   return r.error;
               });
}

op local_locks::revoke(std::string_view lease, deadline by, completion<ended_claims> done) {
    return ask(kind::write, by, std::move(done),
               [lease = std::string(lease)](local_queues& q, ended_claims& answer) {
                   answer = q.revoke(lease);
                   return std::error_code();
               });
}

op local_locks::owned(std::string_view lease, deadline by, completion<std::vector<claim_id>> done) {
    if (*account_ && (*account_)->lease == lease) {
        return calls_->answer({}, (*account_)->owned, std::move(done));
    }
    return ask(kind::read, by, std::move(done),
               [lease = std::string(lease)](local_queues& q, std::vector<claim_id>& answer) {
                   auto r = q.owned(lease);
                   answer = std::move(r.value);
                   return r.error;
               });
}

op local_locks::enter(claim what, deadline by, completion<place> done) {
    const std::optional<entered_ahead> ahead(std::move(*ahead_));
    ahead_->reset();
    if (ahead && ahead->what == what)
        return calls_->answer(ahead->error, ahead->at, std::move(done));
    return ask(kind::write, by, std::move(done),
               [what = std::move(what)](local_queues& q, place& at) { return enter(q, what, at); });
}

std::error_code local_locks::enter(local_queues& q, const claim& what, place& at) {
    auto r = q.enter(what);
    at = std::move(r.value);
    if (r.error) return r.error;
    at.granted = q.given();
    if (!at.granted) {
        auto held = q.verify(what.lease, what.id);
        if (held.error) return {};
        at.granted = std::move(held.value);
    }
    q.expect_listener();
    return {};
}

op local_locks::verify(std::string_view lease, claim_id id, deadline by, completion<grant> done) {
    return ask(kind::read, by, std::move(done),
               [lease = std::string(lease), id](local_queues& q, grant& answer) {
                   auto r = q.verify(lease, id);
                   answer = std::move(r.value);
                   return r.error;
               });
}

op local_locks::turns(std::string_view lease, claim_id id, deadline by,
                      completion<std::vector<bool>> done) {
    return ask(kind::read, by, std::move(done),
               [lease = std::string(lease), id](local_queues& q, std::vector<bool>& answer) {
                   auto r = q.turns(lease, id);
                   answer = std::move(r.value);
                   return r.error;
               });
}

op local_locks::publish(std::string_view lease, claim_id id, std::string_view info, deadline by,
                        completion<int> done) {
    return ask(kind::write, by, std::move(done),
               [lease = std::string(lease), id, info = std::string(info)](local_queues& q, int&) {
                   return q.publish(lease, id, info);
               });
}

op local_locks::leave(std::string_view lease, claim_id id, deadline by, completion<int> done) {
    return ask(kind::write, by, std::move(done),
               [lease = std::string(lease), id](local_queues& q, int&) {
                   q.leave(lease, id);
                   return std::error_code();
               });
}

op local_locks::write(std::string_view lease, std::optional<claim_id> guard,
                      std::span<const change> changes, std::chrono::seconds keep, deadline by,
                      completion<std::uint64_t> done) {
    return ask(kind::durable, by, std::move(done),
               [lease = std::string(lease), guard, keep,
                all = std::vector<change>(changes.begin(), changes.end())](local_queues& q,
                                                                           std::uint64_t& answer) {
                   auto r = q.write(lease, guard, all, keep);
                   answer = r.value;
                   return r.error;
               });
}

op local_locks::read(std::string_view key, deadline by, completion<std::optional<record>> done) {
    return ask(kind::read, by, std::move(done),
               [key = std::string(key)](local_queues& q, std::optional<record>& answer) {
                   answer = q.read(key);
                   return std::error_code();
               });
}

op local_locks::scan(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                     completion<records> done) {
    return ask(kind::read, by, std::move(done),
               [prefix = std::string(prefix), from = std::string(from), rows](local_queues& q,
                                                                              records& answer) {
                   answer = q.scan(prefix, from, rows);
                   return std::error_code();
               });
}

op local_locks::list(std::string_view prefix, std::string_view from, std::size_t rows, deadline by,
                     completion<entries> done) {
    return ask(kind::read, by, std::move(done),
               [prefix = std::string(prefix), from = std::string(from), rows](local_queues& q,
                                                                              entries& answer) {
                   auto r = q.list(prefix, from, rows);
                   answer = std::move(r.value);
                   return r.error;
               });
}

op local_locks::evict(const entry& seen, bool now, std::string_view who, std::string_view why,
                      deadline by, completion<int> done) {
    return ask(kind::write, by, std::move(done),
               [seen, now, asks = eviction{std::string(who), std::string(why)}](
                   local_queues& q, int&) { return q.evict(seen, now, asks); });
}

// ---- waiting ------------------------------------------------------------------------------------

op local_locks::listen(local_lock_watch::kind k, std::string_view what, claim_id id,
                       lock_listener l) {
    const auto listener = next_listener_++;
    listeners_->emplace(listener, std::move(l));
    // In the order of the calls: what was asked before is done by then.
    if (!watch_->add(listener, k, what, id)) tell_worker(kind::nothing, [](local_queues&) {});
    return op([all = std::weak_ptr<lock_listeners>(listeners_),
               watch = std::weak_ptr<local_lock_watch>(watch_), listener]() noexcept {
        if (const auto w = watch.lock()) w->remove(listener);
        const auto a = all.lock();
        if (!a) return;
        // Destroyed after it has left the map: its destructor may end other listeners.
        const auto ended = a->extract(listener);
    });
}

op local_locks::await(std::string_view lease, claim_id id, unique_function<void(place)> moved,
                      completion<grant> done) {
    const bool places = static_cast<bool>(moved);
    lock_listener l;
    l.granted = std::move(done);
    l.moved = std::make_shared<unique_function<void(place)>>(std::move(moved));
    return listen(places ? local_lock_watch::kind::turn_and_place : local_lock_watch::kind::turn,
                  lease, id, std::move(l));
}

op local_locks::on_gone(std::string_view lease, claim_id id,
                        unique_function<void(std::error_code)> gone) {
    lock_listener l;
    l.gone = std::move(gone);
    return listen(local_lock_watch::kind::end, lease, id, std::move(l));
}

op local_locks::observe(std::string_view name, unique_function<void(std::optional<entry>)> seen) {
    lock_listener l;
    l.seen = std::make_shared<unique_function<void(std::optional<entry>)>>(std::move(seen));
    observed_ = true;
    tell_worker(kind::write, [name = std::string(name)](local_queues& q) { q.add_observer(name); });
    return listen(local_lock_watch::kind::holder, name, {}, std::move(l));
}

std::string local_locks::trouble(const std::error_code& told) const {
    return told == errc::unavailable ? worker_->stuck_on() : std::string();
}

op local_locks::stop(deadline by, completion<int> done) {
    watch_->remove_all();
    const auto ended = std::exchange(*listeners_, {});
    // A command that has given everything back ends without another transaction.
    const bool left_something = observed_ || !calls_->idle() || !lives_->own().empty();
    if (!left_something) return calls_->refuse({}, std::move(done));
    return ask(kind::write, by, std::move(done), [socket = self_.socket](local_queues& q, int&) {
        q.end_all_of(socket);
        return std::error_code();
    });
}

}  // namespace trinco::detail
