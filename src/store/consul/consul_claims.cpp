#include "store/consul/consul_claims.hpp"

#include <algorithm>

#include "store/consul/consul_calls.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::consul {

using namespace std::chrono_literals;

namespace {

constexpr boot_clock::duration look_most = 10s;
constexpr boot_clock::duration look_unknown = 5s;
constexpr boot_clock::duration words_last = 5s;
constexpr boot_clock::duration may_land_within = 10min;
constexpr std::size_t most_late = 1'000;  // of each kind

// Whether a claim that stands in a name's line keeps those behind it from contending for it.
bool stands_before(const known_claim& other, const known_claim& me, const std::string& name) {
    // What of a mutex and a semaphore may be is the server's to say, and of semaphores with other
    // numbers; and of permits several may.
    if (other.counts() != me.counts() || other.permits() != me.permits()) return false;
    if (me.counts() && other.phase != claim_phase::waiting) return false;
    if (other.phase != claim_phase::waiting || other.trying) return true;
    // Who waits for another of its names leaves this one to whoever can use it.
    return other.serial < me.serial && (other.obstacle.empty() || other.obstacle == name);
}

template <class Map, class Since>
void keep_latest(Map& all, boot_clock::time_point before, Since since) {
    std::erase_if(all, [&](const auto& one) { return since(one) < before; });
    while (all.size() > most_late) {
        all.erase(std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
            return since(a) < since(b);
        }));
    }
}

}  // namespace

claims::claims(loop& on, std::unique_ptr<rpc> link, consul_locks_settings settings)
    : on_(on), link_(std::move(link)), settings_(std::move(settings)) {}

void claims::stop() noexcept {
    stopped_ = true;
    background_.clear();
    listeners_.clear();
    for (auto& [id, on] : leases_) {
        for (auto& [n, c] : on.claims) c.contending.cancel();
    }
}

void claims::close() noexcept {
    stop();
    link_.reset();
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

known_claim* claims::find(std::string_view lease, claim_id id, std::uint64_t serial) {
    auto* c = find(lease, id);
    return c != nullptr && c->serial == serial ? c : nullptr;
}

known_claim& claims::add(const claim& what) {
    auto& on = lease(what.lease);
    auto& c = on.claims[what.id];
    c.serial = next_++;
    c.parts = what.parts;
    c.info = what.info.empty() ? on.label : what.info;
    c.bare = what.bare;
    c.only_if_free = what.only_if_free;
    c.since = wall_ms();
    c.may_arrive = on.late.contains(what.id);
    for (const auto& p : what.parts) on.lines[p.name].push_back(what.id);
    return c;
}

void claims::remove_from_lines(known_lease& on, claim_id id, const std::vector<part>& parts) {
    for (const auto& p : parts) {
        const auto line = on.lines.find(p.name);
        if (line == on.lines.end()) continue;
        std::erase(line->second, id);
        if (line->second.empty()) on.lines.erase(line);
    }
}

void claims::forget(std::string_view lease, claim_id id, std::error_code why) {
    auto* on = find(lease);
    if (on == nullptr) return;
    const auto at = on->claims.find(id);
    if (at == on->claims.end()) return;
    const auto was = std::move(at->second);  // this may be called in its own step
    on->claims.erase(at);
    remove_from_lines(*on, id, was.parts);
    if (was.may_arrive && !was.counts()) {
        on->late[id] = {was.parts, on_.now()};
        forget_what_is_old(*on);
    }
    give_back(was);
    tell(lease, id, why);
    advance(lease, was.parts);
}

void claims::lose(std::string_view lease, claim_id id) {
    auto* c = find(lease, id);
    if (c == nullptr) return;
    c->may_arrive = c->may_arrive || c->parts.size() > 1;
    forget(lease, id, errc::lost);
}

void claims::forget(std::string_view lease) {
    const auto on = leases_.find(lease);
    if (on == leases_.end()) return;
    const auto was = std::move(on->second);
    const std::string id(lease);
    leases_.erase(on);
    for (const auto& [n, c] : was.claims) give_back(c);
    tell_if([&](const listener& one) { return one.lease == id; }, errc::lost);
}

void claims::give_back(const known_claim& c) {
    if (c.session.empty()) return;
    in_background([&](unique_function<void()> over) {
        return give_back_permit(shared_from_this(), {c.parts.front().name, c.session},
                                on_.now() + patience,
                                [over = std::move(over)](std::error_code, int) mutable { over(); });
    });
}

std::string claims::in_line_behind(std::string_view lease, claim_id id) {
    auto* on = find(lease);
    const auto* me = find(lease, id);
    if (me == nullptr) return {};
    for (const auto& p : me->parts) {
        for (const auto other : on->lines[p.name]) {
            if (other == id) continue;
            if (stands_before(on->claims.at(other), *me, p.name)) return p.name;
        }
    }
    return {};
}

bool claims::others_may_hold(std::string_view lease, claim_id id, const std::string& name) {
    auto* on = find(lease);
    if (on == nullptr) return false;
    const auto line = on->lines.find(name);
    if (line == on->lines.end()) return false;
    return std::any_of(line->second.begin(), line->second.end(), [&](claim_id other) {
        if (other == id) return false;
        const auto& c = on->claims.at(other);
        return c.phase != claim_phase::waiting || c.trying;
    });
}

void claims::erased(std::string_view lease, const std::vector<operation>& what,
                    std::error_code error, bool applied) {
    auto* on = find(lease);
    if (on == nullptr) return;
    for (const auto& one : what) {
        if (error == errc::unknown_outcome) {
            on->may_go[{one.key, one.index}] = on_.now();
        } else if (!error && applied) {
            on->may_go.erase({one.key, one.index});
        }
    }
    forget_what_is_old(*on);
}

void claims::still_there(std::string_view lease, claim_id id) {
    auto* const on = find(lease);
    if (on == nullptr) return;
    const auto late = on->late.find(id);
    if (late != on->late.end()) late->second.since = on_.now();
}

void claims::forget_what_is_old(known_lease& on) {
    const auto before = on_.now() - may_land_within;
    keep_latest(on.late, before, [](const auto& one) { return one.second.since; });
    keep_latest(on.may_go, before, [](const auto& one) { return one.second; });
}

void claims::advance(std::string_view lease, const std::vector<part>& names) {
    on_.post([weak = weak_from_this(), lease = std::string(lease), names] {
        const auto self = weak.lock();
        if (!self || self->link() == nullptr) return;
        for (const auto& p : names) {
            auto* on = self->find(lease);
            if (on == nullptr) return;
            const auto line = on->lines.find(p.name);
            if (line == on->lines.end()) continue;
            for (const auto id : std::vector<claim_id>(line->second)) {
                auto* c = self->find(lease, id);
                if (c == nullptr) break;
                if (c->contends || (c->counts() && c->phase != claim_phase::waiting)) continue;
                if (c->phase != claim_phase::waiting) break;
                const auto behind = self->in_line_behind(lease, id);
                c->obstacle = behind;
                if (behind == p.name && !c->counts()) break;
                if (behind.empty()) contend(self, lease, id, std::nullopt);
            }
        }
    });
}

boot_clock::duration claims::look_every(std::string_view lease) const {
    constexpr int looks = 3;  // within the life of a lease that is not renewed
    const auto on = leases_.find(lease);
    const auto life = on == leases_.end() ? 0s : on->second.granted;
    if (life == 0s) return look_unknown;
    return std::min<boot_clock::duration>(boot_clock::duration(life) / looks, look_most);
}

claims::listener_id claims::listen(std::string_view lease, claim_id id,
                                   unique_function<void(std::error_code)> changed) {
    listeners_.emplace(
        next_,
        listener{std::string(lease), id,
                 std::make_shared<unique_function<void(std::error_code)>>(std::move(changed))});
    return next_++;
}

void claims::tell(std::string_view lease, claim_id id, std::error_code over) {
    tell_if([&](const listener& one) { return one.lease == lease && one.id == id; }, over);
}

void claims::tell_if(const std::function<bool(const listener&)>& of, std::error_code over) {
    for (const auto& [n, one] : listeners_) {
        if (!of(one)) continue;
        on_.post([weak = weak_from_this(), n = n, over] {
            if (const auto self = weak.lock()) self->call(n, over);
        });
    }
}

void claims::call(listener_id n, std::error_code over) {
    const auto at = listeners_.find(n);
    if (at == listeners_.end()) return;
    const auto f = at->second.changed;
    if (over) listeners_.erase(at);
    (*f)(over);
}

void claims::in_background(const std::function<op(unique_function<void()>)>& begin) {
    if (link() == nullptr) return;
    const auto n = next_++;
    background_.emplace(n, op());
    auto begun = begin([weak = weak_from_this(), n] {
        if (const auto self = weak.lock()) self->background_.erase(n);
    });
    const auto at = background_.find(n);
    if (at != background_.end()) at->second = std::move(begun);
}

void claims::say(std::error_code of, std::string sentence) {
    said_of_ = of;
    said_ = std::move(sentence);
    said_at_ = on_.now();
}

std::error_code claims::final_word(const refused& one) {
    const bool denied = one.why == refusal_t::denied;
    if (!denied && one.why != refusal_t::other) return {};
    const auto error = denied ? errc::denied : errc::invalid;
    say(error, one.what);
    return error;
}

std::string claims::said(const std::error_code& of) const {
    const bool meant = of == said_of_ || (said_of_ == errc::conflict && of == errc::not_acquired);
    return meant && on_.now() - said_at_ < words_last ? said_ : std::string();
}

}  // namespace trinco::detail::consul
