// What hangs on a lease: the store's own account, and of whatever may be at the server what is read
// there. That the session exists is asked first.
#include <algorithm>
#include <set>

#include "core/mutant.hpp"
#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

class listing_lease : public conversation<listing_lease, std::vector<claim_id>> {
public:
    explicit listing_lease(std::string_view lease) : lease_(lease) {}

    void start() { request_ = link().facts(lease_, by_, then(&listing_lease::session_read)); }

private:
    struct asked {
        claim_id id;
        std::uint64_t serial = 0;  // 0: it is over, and may come late
        claim_phase phase = claim_phase::asking;
        std::string name;
        std::optional<entry_id> entry = {};  // that it took
        std::string session = {};            // of a permit
    };

    void session_read(std::error_code error, std::optional<session_facts> facts) {
        if (error) return finish(error, {});
        if (!facts) {
            known().forget(lease_);
            return finish(errc::lost, {});
        }
        if (auto* on = known().find(lease_)) {
            known().forget_what_is_old(*on);
            collect(*on);
        }
        std::vector<std::string> keys;
        for (const auto& one : asked_) keys.push_back(key_of(one));
        request_ = read_keys(known_ptr(), std::move(keys), by_, then(&listing_lease::found));
    }
    void collect(const known_lease& on) {
        for (const auto& [id, c] : on.claims) {
            const bool is_account =
                c.phase == claim_phase::asking || c.phase == claim_phase::waiting || c.trying;
            if (is_account) {
                there_.insert(id);
                continue;
            }
            if (c.counts()) {
                collect_permit(id, c);
                continue;
            }
            for (std::size_t i = 0; i < c.parts.size(); ++i) {
                asked one{id, c.serial, c.phase, c.parts[i].name, std::nullopt};
                if (!c.held.empty()) one.entry = c.held[i].id;
                asked_.push_back(std::move(one));
            }
        }
        if (TRINCO_MUTANT("consul_account_unread")) return;
        for (const auto& [id, late] : on.late) {
            if (on.claims.contains(id)) continue;
            for (const auto& p : late.parts) {
                asked_.push_back({id, 0, claim_phase::asking, p.name, std::nullopt});
            }
        }
    }

    void collect_permit(claim_id id, const known_claim& c) {
        if (c.session.empty()) {  // and so nothing at the server
            there_.insert(id);
            return;
        }
        asked one{id, c.serial, c.phase, c.parts.front().name, std::nullopt, c.session};
        if (!c.held.empty()) one.entry = c.held.front().id;
        asked_.push_back(std::move(one));
    }
    [[nodiscard]] std::string key_of(const asked& one) const {
        if (one.session.empty()) return known().key_of(one.name);
        return contender_key(known().settings().prefix, one.name, one.session);
    }

    void found(std::error_code error, found_keys keys) {
        if (error) return finish(error, {});
        std::set<claim_id> missing;
        for (std::size_t i = 0; i < asked_.size(); ++i) {
            const auto& one = asked_[i];
            if (keys[i] && is_of(one, *keys[i])) {
                there_.insert(one.id);
                if (one.serial == 0) known().still_there(lease_, one.id);
            } else {
                missing.insert(one.id);
            }
        }
        for (const auto& one : asked_) forget_what_is_gone(one, missing);
        finish({}, {there_.begin(), there_.end()});
    }
    [[nodiscard]] bool is_of(const asked& one, const key_value& kv) const {
        if (kv.session != (one.session.empty() ? lease_ : one.session)) return false;
        if (one.entry) return is_entry(kv, *one.entry);
        if (const auto note = note_of(kv.value)) return note->id == one.id;
        return !known().others_may_hold(lease_, one.id, one.name);
    }
    // A part that is missing takes the whole claim along.
    void forget_what_is_gone(const asked& one, const std::set<claim_id>& missing) {
        if (one.serial == 0 || !missing.contains(one.id)) return;
        const auto* c = known().find(lease_, one.id, one.serial);
        if (c == nullptr || c->phase != one.phase || c->trying) return;
        const bool others_there = one.phase != claim_phase::granted && there_.contains(one.id);
        if (others_there) return;  // to be given back
        there_.erase(one.id);
        known().lose(lease_, one.id);
    }

    const std::string lease_;
    std::vector<asked> asked_;
    std::set<claim_id> there_;
};

}  // namespace

op claims_on(const claims_ptr& known, std::string_view lease, deadline by,
             completion<std::vector<claim_id>> done) {
    return listing_lease::begin(known, by, std::move(done), lease);
}

}  // namespace trinco::detail::consul
