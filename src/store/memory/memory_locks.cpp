#include "store/memory/memory_locks.hpp"

#include <algorithm>
#include <utility>

#include "trinco/error.hpp"

namespace trinco::detail {

memory_locks::memory_locks(loop& on, std::shared_ptr<memory_lock_server> server)
    : on_(on),
      server_(std::move(server)),
      listening_(std::make_shared<std::map<memory_lock_server::listener_id, bool>>()),
      self_(std::make_shared<memory_locks*>(this)) {
    arm();
}

memory_locks::~memory_locks() {
    for (const auto& one : *listening_) server_->forget(one.first);
}

const lock_traits& memory_locks::traits() const {
    return memory_lock_server::traits();
}

// The answer is known; it is told in the next turn unless its op goes first.
template <class T>
op memory_locks::answer(std::error_code error, T value, completion<T> done) {
    arm();
    const auto waits = std::make_shared<completion<T>>(std::move(done));
    on_.post([waits, error, value = std::move(value)]() mutable {
        if (auto f = std::exchange(*waits, nullptr)) f(error, error ? T{} : std::move(value));
    });
    return op([waits] { waits->reset(); });
}

// An op that ends a listener: the function first, so that what is already posted finds none.
template <class F>
op memory_locks::listen(std::shared_ptr<F> f, memory_lock_server::listener_id id) {
    (*listening_)[id] = true;
    arm();
    return op([f = std::move(f), server = server_, kept = listening_, id] {
        f->reset();
        kept->erase(id);
        server->forget(id);
    });
}

// A turn of this store's loop that calls f if it is still there, and then looks at the time:
// whoever caused the event may have changed what runs out next.
template <class F>
unique_function<void()> memory_locks::turn(const std::shared_ptr<F>& f,
                                           unique_function<void(F&)> call) {
    return [f, call = std::move(call), self = std::weak_ptr<memory_locks*>(self_)]() mutable {
        if (const auto store = self.lock()) (*store)->arm();
        if (*f) call(*f);
    };
}

void memory_locks::arm() {
    const auto next = server_->next_expiry();
    if (next == armed_) return;
    armed_ = next;
    timer_.cancel();
    if (next == boot_clock::time_point::max()) return;
    timer_ = on_.at(next, [this] {
        armed_ = boot_clock::time_point::max();
        server_->sweep();
        arm();
    });
}

op memory_locks::open(std::chrono::seconds ttl, std::string_view label, deadline,
                      completion<lease> done) {
    auto r = server_->open(ttl, label);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::renew(std::string_view lease, deadline, completion<std::chrono::seconds> done) {
    auto r = server_->renew(lease);
    return answer(r.error, r.value, std::move(done));
}

op memory_locks::revoke(std::string_view lease, deadline, completion<ended_claims> done) {
    return answer({}, server_->revoke(lease), std::move(done));
}

op memory_locks::owned(std::string_view lease, deadline, completion<std::vector<claim_id>> done) {
    auto r = server_->owned(lease);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::enter(claim what, deadline, completion<place> done) {
    auto r = server_->enter(what);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::await(std::string_view lease, claim_id id, unique_function<void(place)> moved,
                       completion<grant> done) {
    // Both functions live and end together.
    struct waiting {
        completion<grant> done;
        unique_function<void(place)> moved;
        explicit operator bool() const noexcept { return static_cast<bool>(done); }
        void reset() noexcept {
            done.reset();
            moved.reset();
        }
    };
    const auto w = std::make_shared<waiting>();
    w->done = std::move(done);
    w->moved = std::move(moved);
    memory_lock_server::place_listener places;
    if (w->moved) {
        places = [this, w](place p) {
            on_.post(turn<waiting>(w, [p](waiting& f) { f.moved(p); }));
        };
    }
    const auto granted = [this, w](std::error_code error, const grant& g) {
        on_.post(turn<waiting>(w, [error, g](waiting& f) {
            auto call = std::exchange(f.done, nullptr);
            f.reset();
            call(error, g);
        }));
    };
    return listen(w, server_->await(lease, id, granted, std::move(places)));
}

op memory_locks::on_gone(std::string_view lease, claim_id id,
                         unique_function<void(std::error_code)> gone) {
    using function = unique_function<void(std::error_code)>;
    const auto f = std::make_shared<function>(std::move(gone));
    const auto told = [this, f](std::error_code error) {
        on_.post(turn<function>(f, [error](function& waits) {
            auto call = std::exchange(waits, nullptr);
            call(error);
        }));
    };
    return listen(f, server_->on_gone(lease, id, told));
}

op memory_locks::verify(std::string_view lease, claim_id id, deadline, completion<grant> done) {
    auto r = server_->verify(lease, id);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::turns(std::string_view lease, claim_id id, deadline,
                       completion<std::vector<bool>> done) {
    auto r = server_->turns(lease, id);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::publish(std::string_view lease, claim_id id, std::string_view info, deadline,
                         completion<int> done) {
    return answer(server_->publish(lease, id, info), 0, std::move(done));
}

op memory_locks::leave(std::string_view lease, claim_id id, deadline, completion<int> done) {
    server_->leave(lease, id);
    return answer({}, 0, std::move(done));
}

op memory_locks::write(std::string_view lease, std::optional<claim_id> guard,
                       std::span<const change> changes, std::chrono::seconds keep, deadline,
                       completion<std::uint64_t> done) {
    auto r = server_->write(lease, guard, changes, keep);
    return answer(r.error, r.value, std::move(done));
}

op memory_locks::read(std::string_view key, deadline, completion<std::optional<record>> done) {
    auto r = server_->read(key);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::scan(std::string_view prefix, std::string_view from, std::size_t rows, deadline,
                      completion<records> done) {
    auto r = server_->scan(prefix, from, rows);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::list(std::string_view prefix, std::string_view from, std::size_t rows, deadline,
                      completion<entries> done) {
    auto r = server_->list(prefix, from, rows);
    return answer(r.error, std::move(r.value), std::move(done));
}

op memory_locks::evict(const entry& seen, bool now, std::string_view who, std::string_view why,
                       deadline, completion<int> done) {
    return answer(server_->evict(seen, now, {std::string(who), std::string(why)}), 0,
                  std::move(done));
}

op memory_locks::observe(std::string_view name, unique_function<void(std::optional<entry>)> seen) {
    using function = unique_function<void(std::optional<entry>)>;
    const auto f = std::make_shared<function>(std::move(seen));
    const auto told = [this, f](const std::optional<entry>& holder) {
        on_.post(turn<function>(f, [holder](function& tells) { tells(holder); }));
    };
    return listen(f, server_->observe(name, told));
}

op memory_locks::stop(deadline, completion<int> done) {
    timer_.cancel();
    for (const auto& one : std::exchange(*listening_, {})) server_->forget(one.first);
    const auto waits = std::make_shared<completion<int>>(std::move(done));
    on_.post([waits] {
        if (auto f = std::exchange(*waits, nullptr)) f({}, 0);
    });
    return op([waits] { waits->reset(); });
}

}  // namespace trinco::detail
