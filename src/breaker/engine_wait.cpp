// Calls that need the store's answer: asynchronously on the loop, and for threads that wait.

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "breaker/engine.hpp"
#include "breaker/fleet_link.hpp"
#include "core/wakeup.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

// A place where one thread waits for the loop's answer. An answer that comes after it has gone is
// dropped; one that must not be (a permit) is claimed before it is made.
template <class T>
class mailbox {
public:
    // Whether somebody waits. Who is told so must put an answer at once: the thread then stays.
    [[nodiscard]] bool claim() {
        const std::lock_guard hold(m_);
        claimed_ = !gone_;
        return claimed_;
    }
    // Once.
    void put(T answer) {
        {
            const std::lock_guard hold(m_);
            if (gone_) return;
            answer_ = std::move(answer);
        }
        arrived_.give();  // without the lock, for which the thread would wait again
    }
    std::optional<T> wait(std::chrono::milliseconds bound) {
        arrived_.wait_until(std::chrono::steady_clock::now() + bound);
        std::unique_lock hold(m_);
        if (!answer_ && claimed_) {
            hold.unlock();
            arrived_.wait();
            hold.lock();
        }
        gone_ = true;
        return std::move(answer_);
    }
    [[nodiscard]] bool gone() {
        const std::lock_guard hold(m_);
        return gone_;
    }

private:
    std::mutex m_;
    wakeup arrived_;
    std::optional<T> answer_;
    bool gone_ = false;
    bool claimed_ = false;
};

// Keeps the interest in an answer until it has come.
template <class Start>
void keep_pending(const std::shared_ptr<fleet_link>& link, Start start) {
    const auto id = ++link->last;
    link->pending.emplace(id, start([link, id] { link->pending.erase(id); }));
}

}  // namespace

std::shared_ptr<fleet_link> engine::link_kept() const {
    const lock hold(m_);
    return link_owner_;
}

// ---- on the loop -------------------------------------------------------------------------------

void engine::acquire_async(unique_function<void(permit)> done) {
    const auto link = strict_now() ? link_kept() : nullptr;
    if (!link) {
        acquire_after_read(std::move(done));
        return;
    }
    keep_pending(link, [&](auto finished) {
        return link->member->refresh(
            [link, finished, done = std::move(done)](std::error_code, int) mutable {
                finished();
                // Without an answer the last known state decides.
                if (link->owner != nullptr) link->owner->acquire_after_read(std::move(done));
            });
    });
}

void engine::acquire_after_read(unique_function<void(permit)> done) {
    const auto gate = gate_.load(std::memory_order_acquire);
    permit p;
    if ((gate & mode_mask) <= every) {
        p = acquire();
    } else if (!acquire_without_lock(gate, p)) {
        answer a = acquire_locked();
        if (a.ask_fleet) {
            ask_fleet_async(std::move(done), [] { return true; });
            return;
        }
        p = std::move(a.given);
    }
    done(std::move(p));
}

void engine::ask_fleet_async(unique_function<void(permit)> done, unique_function<bool()> wanted) {
    const auto link = link_kept();
    if (!link) {
        done(not_waiting(refusal_reason::store_late));
        return;
    }
    keep_pending(link, [&](auto finished) {
        return link->member->ask_probe(
            [link, finished, done = std::move(done), wanted = std::move(wanted)](
                std::error_code, probe_answer a) mutable {
                finished();
                if (link->owner == nullptr) return;
                const auto hub = link->owner->hub_;  // `done` may end the breaker
                if (auto p = link->owner->take_fleet_probe(a, wanted)) done(std::move(*p));
                hub->deliver();
            });
    });
}

// Nothing when nobody wants the answer any more: then no call is counted, because who waited has
// been refused already, and a granted probe goes back. Events wait for the caller, who must not
// wait for their callbacks.
std::optional<permit> engine::take_fleet_probe(const probe_answer& a,
                                               unique_function<bool()>& wanted) {
    std::optional<permit> p;
    const lock hold(m_);
    const auto now = clock_.coarse();
    asking_fleet_ = false;
    if (!a.granted) fleet_refused_until_ = now + std::max(a.retry_after, milliseconds(1));
    if (!wanted()) {
        if (a.granted) settle_at_store(a.token, probe_step::give_back);
    } else if (a.granted) {
        ++fleet_probes_out_;
        p = admitted_apart(fleet_probe, a.token);
    } else {
        // The answer may have brought news, by which the call goes through or is refused otherwise.
        p = decide_call(now).given;
    }
    refresh(now);
    return p;
}

// ---- for threads -------------------------------------------------------------------------------

void engine::ask_no_more() noexcept {
    const lock hold(m_);
    asking_fleet_ = false;
}

permit engine::not_waiting(refusal_reason why) noexcept {
    const lock hold(m_);
    asking_fleet_ = false;
    return without_probe(why, options_.store_timeout, clock_.coarse());
}

permit engine::wait_for_fleet() noexcept {
    const auto link = link_kept();
    if (!link || !link->may_wait()) return not_waiting(refusal_reason::store_late);
    const auto box = std::make_shared<mailbox<permit>>();
    link->on.post([link, box] {
        if (link->owner == nullptr) return;
        if (box->gone()) {
            link->owner->ask_no_more();
            return;
        }
        link->owner->ask_fleet_async([box](permit p) { box->put(std::move(p)); },
                                     [box] { return box->claim(); });
    });
    if (auto p = box->wait(options_.store_timeout)) return std::move(*p);
    // The ask itself goes on until its own deadline; until then others are refused as pending.
    const lock hold(m_);
    return without_probe(refusal_reason::store_late, options_.store_timeout, clock_.coarse());
}

void engine::wait_for_refresh() noexcept {
    const auto link = link_kept();
    if (!link || !link->may_wait()) return;
    const auto box = std::make_shared<mailbox<int>>();
    link->on.post([link, box] {
        if (link->owner == nullptr) return;
        keep_pending(link, [&](auto finished) {
            return link->member->refresh([finished, box](std::error_code, int) {
                box->put(0);  // first: somebody waits
                finished();
            });
        });
    });
    box->wait(options_.store_timeout);
}

std::error_code engine::operate_fleet(control_verb verb, std::string_view reason,
                                      milliseconds expires) {
    const auto link = link_kept();
    if (!link) return make_error_code(errc::shut_down);
    if (link->in_a_child()) return make_error_code(errc::forked);
    if (!link->may_wait()) return make_error_code(errc::would_deadlock);
    if (verb == control_verb::resume) {
        const lock hold(m_);
        if (over_.kind != override_kind::none) resume_reason_ = reason;
    }
    control_request r;
    r.breaker = name_;
    r.verb = verb;
    r.reason = reason;
    r.expires = expires;
    const auto bound = options_.store_timeout * 10;
    const auto box = std::make_shared<mailbox<std::error_code>>();
    link->on.post([link, box, bound, r = std::move(r)]() mutable {
        if (link->owner == nullptr) return;
        keep_pending(link, [&](auto finished) {
            return link->sync.control(std::move(r), link->on.now() + bound,
                                      [finished, box](std::error_code ec, const view&) {
                                          finished();
                                          box->put(ec);
                                      });
        });
    });
    const auto reply = box->wait(bound + options_.store_timeout);
    return reply ? *reply : make_error_code(errc::unknown_outcome);
}

}  // namespace trinco::detail
