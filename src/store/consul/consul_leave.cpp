// Leaving: the entries of exactly this claim are deleted, each by the index that it had when it was
// last known, so that no late repetition takes away a later entry of the same key. An attempt that
// is under way is waited for: what it takes is given back, and nothing of it comes late.
#include <algorithm>

#include "core/mutant.hpp"
#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

constexpr int most_attempts = 4;  // when others rewrite meanwhile

class leaving : public conversation<leaving, int> {
public:
    leaving(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    ~leaving() {
        if (listening_ != 0) known().unlisten(listening_);
    }

    void start() {
        auto* c = known().find(lease_, id_);
        if (c == nullptr) return leave_late();
        serial_ = c->serial;
        c->phase = claim_phase::leaving;
        listening_ = known().listen(lease_, id_, [weak = weak_from_this()](std::error_code gone) {
            const auto self = weak.lock();
            if (!self || self->over() || self->known().link() == nullptr) return;
            gone ? self->finish({}, 0) : self->go_on();
        });
        known().tell(lease_, id_);
        if (c->trying) limit_ = known().on().at(by_, then(&leaving::over_time));
    }

private:
    void over_time() { finish(errc::unknown_outcome, 0); }

    void go_on() {
        const auto* c = known().find(lease_, id_, serial_);
        if (c == nullptr) return finish({}, 0);
        if (c->trying || asked_) return;
        asked_ = true;
        if (c->counts()) return give_back(*c);
        names_ = c->parts;
        if (!c->held.empty()) {
            held_ = c->held;
            return erase();
        }
        c->may_arrive ? read() : gone();
    }

    // Ending the session is all that it takes, and what may still land lands on nothing.
    void give_back(const known_claim& c) {
        if (c.session.empty()) return gone();
        request_ = give_back_permit(known_ptr(), {c.parts.front().name, c.session}, by_,
                                    then(&leaving::given_back));
    }
    void given_back(std::error_code error, int) {
        if (error) return finish(error, 0);
        if (auto* c = known().find(lease_, id_, serial_)) c->session.clear();
        gone();
    }

    // Of a claim that is over, what came late.
    void leave_late() {
        const auto* on = known().find(lease_);
        if (on == nullptr) return answer({}, 0);
        const auto late = on->late.find(id_);
        if (late == on->late.end()) return answer({}, 0);
        names_ = late->second.parts;
        read();
    }

    void erase() {
        if (held_.empty()) return gone();
        txn_request ask;
        for (const auto& one : held_) {
            operation away;
            away.verb = TRINCO_MUTANT("consul_release_uncompared") ? operation::verb_t::erase
                                                                   : operation::verb_t::erase_cas;
            away.key = one.key;
            away.index = one.index;
            ask.operations.push_back(std::move(away));
        }
        erased_ = ask.operations;
        request_ = link().txn(ask, by_, then(&leaving::erased));
    }
    void erased(std::error_code error, txn_reply reply) {
        known().erased(lease_, erased_, error, reply.applied);
        if (error) return finish(error, 0);
        if (reply.applied) return gone();
        for (const auto& one : reply.refusals) {
            if (one.why == refusal_t::denied) return finish(known().final_word(one), 0);
        }
        if (++attempts_ == most_attempts) return finish(errc::unknown_outcome, 0);
        read();
    }

    void read() {
        std::vector<std::string> keys;
        for (const auto& p : names_) keys.push_back(known().key_of(p.name));
        request_ = read_keys(known_ptr(), std::move(keys), by_, then(&leaving::found));
    }
    // Goes on with those entries that are there and are this claim's. Those of a claim that is over
    // are not forgotten while they are seen.
    void found(std::error_code error, found_keys keys) {
        if (error) return finish(error, 0);
        std::vector<held_entry> rest;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (!keys[i] || keys[i]->session != lease_) continue;
            if (is_own(*keys[i], names_[i].name)) {
                rest.push_back({keys[i]->key, id_of(*keys[i]), keys[i]->modify_index});
            }
        }
        held_ = std::move(rest);
        if (serial_ == 0 && !held_.empty()) known().still_there(lease_, id_);
        erase();
    }
    [[nodiscard]] bool is_own(const key_value& kv, const std::string& name) const {
        if (serial_ != 0) {
            const auto* c = known().find(lease_, id_, serial_);
            if (c == nullptr) return false;
            for (const auto& one : c->held) {
                if (one.key == kv.key) return is_entry(kv, one.id);
            }
        }
        if (const auto note = note_of(kv.value)) return note->id == id_;
        return !known().others_may_hold(lease_, id_, name);
    }

    void gone() {
        if (serial_ != 0 && known().find(lease_, id_, serial_) != nullptr) {
            known().forget(lease_, id_, errc::lost);
        }
        finish({}, 0);
    }

    const std::string lease_;
    const claim_id id_;
    std::uint64_t serial_ = 0;  // 0: it is over
    claims::listener_id listening_ = 0;
    bool asked_ = false;
    int attempts_ = 0;
    std::vector<part> names_;
    std::vector<held_entry> held_;
    std::vector<operation> erased_;
    op limit_;
};

}  // namespace

op leave_claim(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
               completion<int> done) {
    return leaving::begin(known, by, std::move(done), lease, id);
}

}  // namespace trinco::detail::consul
