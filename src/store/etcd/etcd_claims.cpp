#include "store/etcd/etcd_claims.hpp"

#include <algorithm>

namespace trinco::detail::etcd {

using namespace std::chrono_literals;

namespace {

constexpr boot_clock::duration look_most = 10s;
constexpr boot_clock::duration look_unknown = 5s;

}  // namespace

claims::claims(loop& on, std::unique_ptr<rpc> link, etcd_locks_settings settings)
    : glances(on, [this] { return this->link(); }),
      on_(on),
      link_(std::move(link)),
      settings_(std::move(settings)),
      self_(std::make_shared<claims*>(this)) {}

void claims::stop() noexcept {
    stopped_ = true;
    background_.clear();
    glances.stop();
    listeners_.clear();
}

void claims::close() noexcept {
    stop();
    link_.reset();
}

known_lease& claims::lease(std::string_view id) {
    auto* known = find(id);
    return known != nullptr ? *known : leases_[std::string(id)];
}

known_lease* claims::find(std::string_view lease) {
    const auto on = leases_.find(lease);
    return on == leases_.end() ? nullptr : &on->second;
}

known_claim* claims::find(std::string_view lease, claim_id id) {
    auto* on = find(lease);
    if (on == nullptr) return nullptr;
    const auto at = on->claims.find(id);
    return at == on->claims.end() ? nullptr : &at->second;
}

std::chrono::seconds claims::granted(std::string_view lease) const {
    const auto on = leases_.find(lease);
    return on == leases_.end() ? 0s : on->second.granted;
}

std::string claims::label(std::string_view lease) const {
    const auto on = leases_.find(lease);
    return on == leases_.end() ? std::string() : on->second.label;
}

boot_clock::duration claims::look_every(std::string_view lease) const {
    constexpr int looks = 3;  // within the life of a lease that is not renewed
    const auto life = granted(lease);
    if (life == 0s) return look_unknown;
    return std::min<boot_clock::duration>(boot_clock::duration(life) / looks, look_most);
}

void claims::forget(std::string_view lease, claim_id id) {
    if (auto* c = find(lease, id); c != nullptr && slots.may_arrive(lease, id)) {
        known_claim awaited;
        awaited.parts = std::move(c->parts);
        awaited.bare = c->bare;
        *c = std::move(awaited);
    } else if (c != nullptr) {
        find(lease)->claims.erase(id);
    }
    tell(lease, id);
}

void claims::forget(std::string_view lease) {
    const auto on = leases_.find(lease);
    if (on != leases_.end()) leases_.erase(on);
    slots.forget(lease);
    tell(lease, std::nullopt);
}

void claims::keep_record_lease(std::chrono::seconds keep, record_lease one) {
    std::erase_if(record_leases_,
                  [now = on_.now()](const auto& old) { return old.second.until <= now; });
    record_leases_[keep] = one;
}

claims::listener_id claims::listen(std::string_view lease, claim_id id,
                                   unique_function<void()> removed) {
    listeners_.emplace(next_, listener{std::string(lease), id, std::move(removed)});
    return next_++;
}

void claims::tell(std::string_view lease, std::optional<claim_id> id) {
    for (auto& [n, one] : listeners_) {
        if (one.lease != lease || (id && one.id != *id)) continue;
        on_.post([alive = std::weak_ptr<claims*>(self_), n = n] {
            const auto all = alive.lock();
            if (!all) return;
            const auto at = (*all)->listeners_.find(n);
            if (at == (*all)->listeners_.end()) return;
            auto f = std::move(at->second.removed);
            (*all)->listeners_.erase(at);
            if (f) f();
        });
    }
}

void claims::in_background(const std::function<op(unique_function<void()>)>& begin) {
    if (!link_) return;
    const auto n = next_++;
    background_.emplace(n, op());
    auto begun = begin([alive = std::weak_ptr<claims*>(self_), n] {
        if (const auto all = alive.lock()) (*all)->background_.erase(n);
    });
    background_[n] = std::move(begun);
}

}  // namespace trinco::detail::etcd
