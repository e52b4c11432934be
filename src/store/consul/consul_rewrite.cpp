// Rewriting the values of entries: read, change, and put back on condition that nobody else did
// meanwhile. The session that holds the key takes it once more, which is what Consul has for that:
// `set` and `cas` would reset its LockIndex. Its ModifyIndex changes, so that a value which is
// rewritten tells its token from then on.
#include <algorithm>

#include "store/consul/consul_calls.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::detail::consul {
namespace {

constexpr int most_attempts = 16;  // when others rewrite meanwhile

// A server that has begun anew imposes lock-delays anew, on the holder too.
constexpr std::string_view held_back =
    "Consul keeps the key back for a lock-delay that a server has begun anew: try again in some "
    "seconds";

void put_back(txn_request& ask, const key_value& read, std::string value) {
    operation same;
    same.verb = operation::verb_t::check_index;
    same.key = read.key;
    same.index = read.modify_index;
    ask.operations.push_back(std::move(same));
    operation put;
    put.verb = operation::verb_t::lock;
    put.key = read.key;
    put.value = std::move(value);
    put.flags = read.flags == semaphore_flags ? semaphore_flags : lock_flags;
    put.session = read.session;
    ask.operations.push_back(std::move(put));
}

class rewriting : public conversation<rewriting, int> {
public:
    rewriting(std::string_view lease, claim_id id, std::string_view info)
        : lease_(lease), id_(id), info_(info) {}

    void start() {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr || c->phase != claim_phase::granted) return refuse(errc::lost);
        if (c->bare && note_of(info_)) return refuse(errc::invalid);
        serial_ = c->serial;
        for (const auto& one : c->held) keys_.push_back(one.key);
        read();
    }

private:
    void read() { request_ = read_keys(known_ptr(), keys_, by_, then(&rewriting::found)); }
    void found(std::error_code error, found_keys keys) {
        if (error) return finish(error, 0);
        const auto* c = known().find(lease_, id_, serial_);
        if (c == nullptr) return finish(errc::lost, 0);
        txn_request ask;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (!keys[i] || !is_entry(*keys[i], c->held[i].id)) {
                known().lose(lease_, id_);
                return finish(errc::lost, 0);
            }
            if (c->bare) {
                put_back(ask, *keys[i], info_);
                continue;
            }
            const auto was = note_of(keys[i]->value);
            auto note = was ? *was : owner_note();
            note.id = id_;
            note.since = c->since;
            note.held = c->held_at;
            note.info = info_;
            note.token = c->tokens[i];
            note.lease = c->counts() ? lease_ : std::string();
            put_back(ask, *keys[i], text_of(note));
        }
        request_ = link().txn(ask, by_, then(&rewriting::written));
    }
    void written(std::error_code error, txn_reply reply) {
        if (error) return finish(error, 0);
        for (const auto& one : reply.refusals) {
            if (const auto why = known().final_word(one)) return finish(why, 0);
            if (one.why == refusal_t::lock_delay) {
                known().say(errc::unavailable, std::string(held_back));
                return finish(errc::unavailable, 0);
            }
        }
        auto* c = known().find(lease_, id_, serial_);
        if (c == nullptr) return finish(errc::lost, 0);
        if (!reply.applied) return ++attempts_ == most_attempts ? finish(errc::busy, 0) : read();
        for (const auto& row : reply.rows) {
            for (auto& one : c->held) {
                if (one.key == row.key) one.index = std::max(one.index, row.modify_index);
            }
        }
        c->info = info_;
        finish({}, 0);
    }

    const std::string lease_;
    const claim_id id_;
    const std::string info_;
    std::uint64_t serial_ = 0;
    std::vector<std::string> keys_;
    int attempts_ = 0;
};

class evicting : public conversation<evicting, int> {
public:
    // `place`: the key that lists the holders, of a permit; else empty.
    evicting(handle_parts of, std::string place, bool now, eviction asked)
        : of_(std::move(of)), place_(std::move(place)), now_(now), asked_(std::move(asked)) {}

    void start() { read(); }

private:
    void read() {
        std::vector<std::string> keys{of_.key};
        if (!place_.empty()) keys.push_back(place_);
        request_ = read_keys(known_ptr(), std::move(keys), by_, then(&evicting::found));
    }
    void found(std::error_code error, found_keys keys) {
        if (error) return finish(error, 0);
        if (!keys[0] || keys[0]->session.empty()) return finish(errc::lost, 0);
        if (!is_entry(*keys[0], of_.id)) return finish(errc::conflict, 0);
        txn_request ask;
        if (now_) {
            operation away;
            away.verb = operation::verb_t::erase_cas;
            away.key = of_.key;
            away.index = keys[0]->modify_index;
            ask.operations.push_back(std::move(away));
            if (!place_.empty() && has_place(keys[1], of_.id.session)) {
                auto said = holders_of(keys[1]->value).value_or(semaphore_holders());
                said.sessions.erase(of_.id.session);
                ask.operations.push_back(
                    change_of(place_, keys[1]->modify_index, said.limit, std::move(said.sessions)));
            }
        } else {
            auto note = note_of(keys[0]->value);
            if (!note) return finish(errc::not_supported, 0);
            note->evicted = asked_;
            if (note->token == 0 && place_.empty()) {
                note->token = known().token_at(keys[0]->modify_index);
            }
            put_back(ask, *keys[0], text_of(*note));
        }
        request_ = link().txn(ask, by_, then(&evicting::written));
    }
    void written(std::error_code error, txn_reply reply) {
        if (error || reply.applied) return finish(error, 0);
        for (const auto& one : reply.refusals) {
            if (const auto why = known().final_word(one)) return finish(why, 0);
            if (one.why == refusal_t::lock_delay) {
                known().say(errc::unavailable, std::string(held_back));
                return finish(errc::unavailable, 0);
            }
        }
        if (++attempts_ == most_attempts) return finish(errc::busy, 0);
        read();
    }

    const handle_parts of_;
    const std::string place_;
    const bool now_;
    const eviction asked_;
    int attempts_ = 0;
};

}  // namespace

op rewrite_claim(const claims_ptr& known, std::string_view lease, claim_id id,
                 std::string_view info, deadline by, completion<int> done) {
    return rewriting::begin(known, by, std::move(done), lease, id, info);
}

op evict_entry(const claims_ptr& known, const entry& seen, bool now, const eviction& asked,
               deadline by, completion<int> done) {
    auto of = parts_of_handle(seen.handle);
    const auto& s = known->settings();
    const auto permit = of ? contender_of_key(s.prefix, of->key) : std::nullopt;
    const bool counts = permit && permit->session == of->id.session;
    if (!of || !asked.is_sound() || (!counts && !name_of_key(s.prefix, of->key, s.plain_keys))) {
        return known->on().at(known->on().now(),
                              [done = std::move(done)]() mutable { done(errc::invalid, 0); });
    }
    auto place = counts ? semaphore_key(s.prefix, permit->name) : std::string();
    return evicting::begin(known, by, std::move(done), std::move(*of), std::move(place), now,
                           asked);
}

}  // namespace trinco::detail::consul
