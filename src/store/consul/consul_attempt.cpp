// One attempt to take all names of a claim: a transaction that takes each of them only if it is as
// it was last seen, at first: not there. When that does not hold the keys are read, and whatever is
// free is taken at the index at which it was.
//
// The compare is what makes it safe to ask again. A session may take what it holds already, so a
// request that comes late, or a second claim of the same lease, would take it once more; and a key
// that holds something else, such as a semaphore, would be overwritten.
//
// What is found to be held by the own session is this claim, of which a request was carried out and
// its answer lost; or a claim that is over, whose request came late, and is deleted.
#include <algorithm>

#include "core/mutant.hpp"
#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

constexpr int most_rounds = 8;  // when others come and go meanwhile

class attempting : public conversation<attempting, attempt_result> {
public:
    attempting(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    void start() {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr) return refuse(errc::lost);
        serial_ = c->serial;
        for (const auto& p : c->parts) {
            names_.push_back(p.name);
            keys_.push_back(known().key_of(p.name));
        }
        seen_.assign(keys_.size(), 0);
        c->may_arrive ? read() : send();
    }

private:
    void send() {
        auto* c = known().find(lease_, id_, serial_);
        if (c == nullptr) return finish(errc::lost, {});
        out_.sent = known().on().now();
        c->held_at = known().wall_ms();
        const auto value = value_of(*c);
        txn_request ask;
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            operation same;
            same.verb = seen_[i] == 0 ? operation::verb_t::check_not_exists
                                      : operation::verb_t::check_index;
            same.key = keys_[i];
            same.index = seen_[i];
            if (!TRINCO_MUTANT("consul_enter_uncompared")) ask.operations.push_back(same);
            operation take;
            take.verb = operation::verb_t::lock;
            take.key = keys_[i];
            take.value = value;
            take.flags = lock_flags;
            take.session = lease_;
            ask.operations.push_back(std::move(take));
        }
        request_ = link().txn(ask, by_, then(&attempting::answered));
        asked_ = std::move(ask.operations);
    }

    [[nodiscard]] std::string value_of(const known_claim& c) const {
        if (c.bare) return c.info;
        owner_note note;
        note.id = id_;
        note.since = c.since;
        note.held = c.held_at;
        note.info = c.info;
        return text_of(note);
    }

    void answered(std::error_code error, txn_reply reply) {
        auto* c = known().find(lease_, id_, serial_);
        if (c == nullptr) return finish(errc::lost, {});
        if (error == errc::unknown_outcome) c->may_arrive = true;
        if (error) return finish(error, {});
        if (!reply.applied) return refused(reply);
        for (const auto& key : keys_) {
            const auto row = std::find_if(reply.rows.rbegin(), reply.rows.rend(), [&](auto& kv) {
                return kv.key == key && kv.session == lease_;
            });
            if (row == reply.rows.rend()) {  // it was done, and is not told
                c->may_arrive = true;
                return finish(errc::unknown_outcome, {});
            }
            hold(*row, 0);
        }
        taken();
    }

    void refused(const txn_reply& reply) {
        for (const auto& one : reply.refusals) {
            const auto& key = asked_.at(std::min(one.operation, asked_.size() - 1)).key;
            switch (one.why) {
                case refusal_t::no_session: return finish(errc::lost, {});
                case refusal_t::lock_delay: return held_back(key);
                default: break;
            }
            if (const auto why = known().final_word(one)) return finish(why, {});
        }
        read();
    }
    void held_back(const std::string& key) {
        const auto at = std::find(keys_.begin(), keys_.end(), key) - keys_.begin();
        out_.name = names_.at(std::min<std::size_t>(at, names_.size() - 1));
        known().say(errc::conflict,
                    "'" + out_.name +
                        "' is free, but Consul keeps it back for the lock-delay of the session "
                        "that ended without giving it back (5 s of Trinco's, 15 s of others' "
                        "unless they chose another one), and does not tell how long");
        out_.what = attempt_result::what_t::held_back;
        finish({}, std::move(out_));
    }

    void read() {
        if (++rounds_ > most_rounds) return in_the_way(names_.front());
        out_.sent = known().on().now();
        request_ = read_keys(known_ptr(), keys_, by_, then(&attempting::found));
    }
    void found(std::error_code error, found_keys keys) {
        if (error) return finish(error, {});
        const auto* c = known().find(lease_, id_, serial_);
        if (c == nullptr) return finish(errc::lost, {});
        std::vector<key_value> own;
        std::vector<key_value> stale;
        std::string obstacle;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            seen_[i] = keys[i] ? keys[i]->modify_index : 0;
            if (!keys[i]) continue;
            // What somebody holds is a lock, also when it was written over.
            const bool is_held = !keys[i]->session.empty();
            if (keys[i]->flags == semaphore_flags || (!is_held && keys[i]->flags != lock_flags)) {
                return other_kind(*keys[i], names_[i]);
            }
            if (!is_held) continue;
            if (keys[i]->session != lease_) {
                obstacle = names_[i];
            } else if (is_own(*c, *keys[i])) {
                own.push_back(*keys[i]);
            } else if (known().others_may_hold(lease_, id_, names_[i])) {
                obstacle = names_[i];
            } else {
                stale.push_back(*keys[i]);
            }
        }
        if (own.size() == keys_.size()) return was_taken(own);
        // Of several names one was taken away by an operator: the others are worth nothing.
        stale.insert(stale.end(), own.begin(), own.end());
        if (!stale.empty()) return erase(stale);
        if (!obstacle.empty()) return in_the_way(obstacle);
        send();
    }
    [[nodiscard]] bool is_own(const known_claim& c, const key_value& kv) {
        const auto& may_go = known().find(lease_)->may_go;
        if (may_go.contains({kv.key, kv.modify_index})) return false;
        const auto note = note_of(kv.value);
        if (note) return note->id == id_;
        return c.bare && c.may_arrive && kv.value == c.info;
    }

    void erase(const std::vector<key_value>& stale) {
        txn_request ask;
        for (const auto& kv : stale) {
            operation one;
            one.verb = operation::verb_t::erase_cas;
            one.key = kv.key;
            one.index = kv.modify_index;
            ask.operations.push_back(std::move(one));
        }
        asked_ = ask.operations;
        request_ = link().txn(ask, by_, then(&attempting::erased));
    }
    void erased(std::error_code error, txn_reply reply) {
        known().erased(lease_, asked_, error, reply.applied);
        if (known().find(lease_, id_, serial_) == nullptr) return finish(errc::lost, {});
        // Nothing was taken, whatever became of this.
        if (error) return finish(error == errc::unknown_outcome ? errc::unavailable : error, {});
        read();
    }

    void hold(const key_value& kv, std::uint64_t token) {
        out_.held.push_back({kv.key, id_of(kv), kv.modify_index});
        const auto index =
            TRINCO_MUTANT("consul_token_of_lock_index") ? kv.lock_index : kv.modify_index;
        out_.tokens.push_back(token != 0 ? token : known().token_at(index));
    }
    void was_taken(const std::vector<key_value>& own) {
        for (const auto& kv : own) {
            const auto note = note_of(kv.value);
            hold(kv, note ? note->token : 0);
        }
        taken();
    }
    void taken() {
        out_.what = attempt_result::what_t::taken;
        finish({}, std::move(out_));
    }
    void in_the_way(const std::string& name) {
        out_.what = attempt_result::what_t::in_the_way;
        out_.name = name;
        finish({}, std::move(out_));
    }
    void other_kind(const key_value& kv, const std::string& name) {
        out_.what = attempt_result::what_t::other_kind;
        out_.name = name;
        const bool counts = kv.flags == semaphore_flags;
        out_.refusal = counts ? errc::limit_mismatch : errc::invalid;
        known().say(out_.refusal,
                    "the key '" + kv.key + "' is not that of a lock but " +
                        (counts ? "of a semaphore: choose another name"
                                : "something else, with flags " + std::to_string(kv.flags) +
                                      ": choose another name"));
        finish({}, std::move(out_));
    }

    const std::string lease_;
    const claim_id id_;
    std::uint64_t serial_ = 0;
    std::vector<std::string> names_;
    std::vector<std::string> keys_;
    std::vector<std::uint64_t> seen_;  // the index of each key; 0: it is not there
    std::vector<operation> asked_;
    int rounds_ = 0;
    attempt_result out_;
};

}  // namespace

op attempt(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
           completion<attempt_result> done) {
    return attempting::begin(known, by, std::move(done), lease, id);
}

}  // namespace trinco::detail::consul
