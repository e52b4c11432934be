// Calls that need the store's answer: asynchronously on the loop, and for threads that wait.

#include <condition_variable>
#include <mutex>
#include <utility>

#include "breaker/engine.hpp"
#include "breaker/fleet_link.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

// A place where one thread waits for the loop's answer. An answer that comes after it has gone is
// dropped.
template <class T>
class mailbox {
public:
    void put(T answer) {
        const std::lock_guard hold(m_);
        if (gone_) return;
        answer_ = std::move(answer);
        arrived_.notify_one();
    }
    std::optional<T> wait(std::chrono::milliseconds bound) {
        std::unique_lock hold(m_);
        arrived_.wait_for(hold, bound, [this] { return answer_.has_value(); });
        gone_ = true;
        return std::move(answer_);
    }

private:
    std::mutex m_;
    std::condition_variable arrived_;
    std::optional<T> answer_;
    bool gone_ = false;
};

// Keeps the interest in an answer until it has come.
template <class Start>
void keep_pending(const std::shared_ptr<fleet_link>& link, Start start) {
    const auto id = ++link->last;
    link->pending.emplace(
        id, start([link, id] { link->on.post([link, id] { link->pending.erase(id); }); }));
}

}  // namespace

std::shared_ptr<fleet_link> engine::link_kept() const {
    const lock hold(m_);
    return link_owner_;
}

// ---- on the loop -------------------------------------------------------------------------------

void engine::acquire_async(unique_function<void(permit)> done) {
    const auto link = link_kept();
    if (!link || !strict_now()) {
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
            ask_fleet_async(std::move(done));
            return;
        }
        p = std::move(a.given);
    }
    done(std::move(p));
}

void engine::ask_fleet_async(unique_function<void(permit)> done) {
    const auto link = link_kept();
    if (!link) {
        done(not_waiting(refusal_reason::store_late));
        return;
    }
    keep_pending(link, [&](auto finished) {
        return link->member->ask_probe(
            [link, finished, done = std::move(done)](std::error_code, probe_answer a) mutable {
                finished();
                if (link->owner != nullptr) done(link->owner->take_fleet_probe(a));
            });
    });
}

permit engine::take_fleet_probe(const probe_answer& a) {
    permit p;
    {
        const lock hold(m_);
        const auto now = clock_.coarse();
        asking_fleet_ = false;
        if (a.granted) {
            ++fleet_probes_out_;
            p = admitted_apart(fleet_probe, a.token);
        } else {
            // The answer may have brought news, by which the call goes through or is refused
            // otherwise.
            fleet_refused_until_ = now + std::max(a.retry_after, milliseconds(1));
            p = decide_call(now).given;
        }
        refresh(now);
    }
    hub_->deliver();
    return p;
}

// ---- for threads -------------------------------------------------------------------------------

permit engine::not_waiting(refusal_reason why) noexcept {
    const lock hold(m_);
    asking_fleet_ = false;
    return refused(refused_by::fleet_breaker, why, options_.store_timeout, clock_.coarse());
}

permit engine::wait_for_fleet() noexcept {
    const auto link = link_kept();
    if (!link || link->thread == std::this_thread::get_id()) {
        return not_waiting(refusal_reason::store_late);
    }
    const auto box = std::make_shared<mailbox<permit>>();
    link->on.post([link, box] {
        if (link->owner == nullptr) return;
        link->owner->ask_fleet_async([box](permit p) { box->put(std::move(p)); });
    });
    if (auto p = box->wait(options_.store_timeout)) return std::move(*p);
    // The ask itself goes on until its own deadline; until then others are refused as pending.
    const lock hold(m_);
    return refused(refused_by::fleet_breaker, refusal_reason::store_late, options_.store_timeout,
                   clock_.coarse());
}

void engine::wait_for_refresh() noexcept {
    const auto link = link_kept();
    if (!link || link->thread == std::this_thread::get_id()) return;
    const auto box = std::make_shared<mailbox<int>>();
    link->on.post([link, box] {
        if (link->owner == nullptr) return;
        keep_pending(link, [&](auto finished) {
            return link->member->refresh([finished, box](std::error_code, int) {
                finished();
                box->put(0);
            });
        });
    });
    box->wait(options_.store_timeout);
}

std::error_code engine::operate_fleet(control_verb verb, std::string_view reason,
                                      milliseconds expires) {
    const auto link = link_kept();
    if (!link) return make_error_code(errc::shut_down);
    if (link->thread == std::this_thread::get_id()) return make_error_code(errc::not_supported);
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
