// Records, under trinco:records/, and the data of users, under their own names: changed in one
// transaction that compares indexes and, with a guard, that the claim's keys are as they were when
// it was granted, or as they were rewritten since.
//
// `keep` has no help from Consul, which has no clock for keys: the time is in the flags, by the
// wall clocks of who writes and who reads. So a key is there for some time more, by which the
// clocks may differ. What has expired is not there for who reads, is overwritten by who writes, and
// is deleted by who lists records, but only a day later: a clock that is wrong shall not take it
// from others.
#include <algorithm>

#include "core/lock/data_key.hpp"
#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::size_t max_changes = 64;
constexpr std::size_t max_key = 512;
constexpr std::size_t max_value = 128 * 1'024;
constexpr std::size_t max_bytes = 256 * 1'024;  // the server takes 512 KiB, in base64
constexpr std::size_t max_page = 1'024 * 1'024;
constexpr std::size_t max_rows = 1'000;
constexpr std::size_t reads_at_once = 16;
constexpr std::size_t most_swept = 128;  // in one transaction: as many as Consul takes
constexpr std::chrono::seconds max_keep{86'400LL * 366};
constexpr std::chrono::seconds most_margin{3'600};  // clocks differ by time zones and summer times
constexpr std::chrono::seconds swept_after{86'400};
constexpr int most_rounds = 4;  // when others rewrite or expired ones are in the way

std::string stored_key(const claims& known, std::string_view key) {
    const auto& prefix = known.settings().prefix;
    if (is_data_key(key)) return prefix + std::string(key);
    return prefix + std::string(records_prefix) + std::string(key);
}

// Whether Consul can have it; else it is said why not.
bool is_possible(claims& known, std::string_view key) {
    const auto bad = check_segments(key);
    if (bad) known.say(errc::invalid, "the key " + *bad);
    return !bad;
}

std::int64_t now_second(const claims& known) {
    return known.wall_ms() / 1'000;
}

bool is_sound(std::span<const change> changes, std::chrono::seconds keep) {
    if (changes.empty() || changes.size() > max_changes) return false;
    std::size_t bytes = 0;
    for (const auto& one : changes) {
        const auto size = one.value ? one.value->size() : 0;
        if (one.key.empty() || one.key.size() > max_key || size > max_value) return false;
        bytes += one.key.size() + size;
    }
    return bytes <= max_bytes && keep >= std::chrono::seconds(0) && keep <= max_keep;
}

class writing : public conversation<writing, std::uint64_t> {
public:
    writing(std::string_view lease, std::optional<claim_id> guard, std::span<const change> changes,
            std::chrono::seconds keep)
        : lease_(lease), guard_(guard), changes_(changes.begin(), changes.end()), keep_(keep) {}

    void start() {
        if (!is_sound(changes_, keep_)) return refuse(errc::invalid);
        if (guard_) {
            const auto* c = known().find(lease_, *guard_);
            if (c == nullptr || c->phase != claim_phase::granted) return refuse(errc::lost);
            if (c->counts()) {
                known().say(errc::not_supported,
                            "a permit is no guard on Consul, since others hold the semaphore, too");
                return refuse(errc::not_supported);
            }
            guards_ = c->held;
        }
        for (const auto& one : changes_) {
            if (!is_possible(known(), one.key)) return refuse(errc::invalid);
            keys_.push_back(stored_key(known(), one.key));
            expired_.push_back(0);
        }
        send();
    }

private:
    [[nodiscard]] std::size_t guard_operations() const { return 2 * guards_.size(); }

    void send() {
        txn_request ask;
        for (const auto& one : guards_) {
            operation same;
            same.verb = operation::verb_t::check_index;
            same.key = one.key;
            same.index = one.index;
            ask.operations.push_back(same);
            same.verb = operation::verb_t::check_session;
            same.session = lease_;
            ask.operations.push_back(std::move(same));
        }
        const auto kept = keep_ + std::min(keep_, most_margin);
        const auto until = keep_.count() == 0 ? 0 : now_second(known()) + kept.count() + 1;
        for (std::size_t i = 0; i < changes_.size(); ++i) {
            ask.operations.push_back(operation_of(i, flags_until(until)));
        }
        request_ = link().txn(ask, by_, then(&writing::written));
    }
    [[nodiscard]] operation operation_of(std::size_t i, std::uint64_t flags) const {
        using verb_t = operation::verb_t;
        const auto& one = changes_[i];
        const bool compares = one.if_revision != any_revision;
        operation out;
        out.key = keys_[i];
        out.index = compares ? one.if_revision : 0;
        if (one.if_revision == must_be_absent) out.index = expired_[i];
        if (one.value) {
            out.verb = compares ? verb_t::cas : verb_t::set;
            out.value = *one.value;
            out.flags = flags;
        } else if (compares && out.index == 0) {
            out.verb = verb_t::check_not_exists;
        } else {
            out.verb = compares ? verb_t::erase_cas : verb_t::erase;
        }
        return out;
    }

    void written(std::error_code error, txn_reply reply) {
        if (error) return finish(error, 0);
        if (reply.applied) return finish({}, revision_of(reply));
        if (++rounds_ > most_rounds) return finish(errc::busy, 0);
        bool guarded = false;
        for (const auto& one : reply.refusals) {
            if (const auto why = known().final_word(one)) return finish(why, 0);
            guarded = guarded || one.operation < guard_operations();
        }
        guarded ? read_guards() : read_changes();
    }
    // Of erasures alone nothing is told but that they are done.
    [[nodiscard]] std::uint64_t revision_of(const txn_reply& reply) const {
        std::uint64_t out = 0;
        for (const auto& row : reply.rows) {
            const bool changed = std::find(keys_.begin(), keys_.end(), row.key) != keys_.end();
            if (changed) out = std::max(out, row.modify_index);
        }
        return out;
    }

    // They were rewritten, as by publish, or are not the claim's any more.
    void read_guards() {
        std::vector<std::string> keys;
        for (const auto& one : guards_) keys.push_back(one.key);
        request_ = read_keys(known_ptr(), std::move(keys), by_, then(&writing::guards_read));
    }
    void guards_read(std::error_code error, found_keys keys) {
        if (error) return finish(error, 0);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (!keys[i] || !is_entry(*keys[i], guards_[i].id)) return finish(errc::lost, 0);
            guards_[i].index = keys[i]->modify_index;
        }
        send();
    }

    // What has expired counts as absent.
    void read_changes() {
        request_ = read_keys(known_ptr(), keys_, by_, then(&writing::changes_read));
    }
    void changes_read(std::error_code error, found_keys keys) {
        if (error) return finish(error, 0);
        bool any = false;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const bool expired = keys[i] && has_expired(*keys[i], now_second(known()));
            const auto index = expired ? keys[i]->modify_index : 0;
            const auto wanted = changes_[i].if_revision;
            any = any || (wanted == must_be_absent && index != expired_[i]);
            expired_[i] = index;
            const bool same = keys[i] && !expired && keys[i]->modify_index == wanted;
            if (wanted == must_be_absent ? keys[i] && !expired : wanted != any_revision && !same) {
                return finish(errc::conflict, 0);
            }
        }
        any ? send() : finish(errc::conflict, 0);
    }

    const std::string lease_;
    const std::optional<claim_id> guard_;
    const std::vector<change> changes_;
    const std::chrono::seconds keep_;
    std::vector<held_entry> guards_;
    std::vector<std::string> keys_;
    std::vector<std::uint64_t> expired_;  // indexes of what has expired and is there; else 0
    int rounds_ = 0;
};

class reading : public conversation<reading, std::optional<record>> {
public:
    explicit reading(std::string_view key) : key_(key) {}
    void start() {
        if (!is_possible(known(), key_)) return refuse(errc::invalid);
        request_ = read_keys(known_ptr(), {stored_key(known(), key_)}, by_, then(&reading::found));
    }

private:
    void found(std::error_code error, found_keys keys) {
        if (error || !keys[0] || has_expired(*keys[0], now_second(known()))) {
            return finish(error, {});
        }
        finish({}, record{std::move(keys[0]->value), keys[0]->modify_index});
    }
    const std::string key_;
};

// Consul refuses the whole when the right to one is missing: then the others once more.
void erase_in_background(const claims_ptr& known, const txn_request& ask) {
    known->in_background([&](unique_function<void()> over) {
        auto answered = [weak = std::weak_ptr(known), ask, over = std::move(over)](
                            std::error_code error, const txn_reply& reply) mutable {
            // Here, whoever drops the rest.
            const auto alive = weak.lock();
            const txn_request asked = std::move(ask);
            over();
            if (error || reply.applied || !alive || alive->link() == nullptr) return;
            txn_request rest;
            for (std::size_t i = 0; i < asked.operations.size(); ++i) {
                const bool denied = std::any_of(
                    reply.refusals.begin(), reply.refusals.end(), [&](const refused& one) {
                        return one.operation == i && one.why == refusal_t::denied;
                    });
                if (!denied) rest.operations.push_back(asked.operations[i]);
            }
            const bool fewer = rest.operations.size() < asked.operations.size();
            if (fewer && !rest.operations.empty()) erase_in_background(alive, rest);
        };
        return known->link()->txn(ask, known->on().now() + patience, std::move(answered));
    });
}

class scanning : public conversation<scanning, records> {
public:
    scanning(std::string_view prefix, std::string_view from, std::size_t rows)
        : prefix_(prefix), from_(from), rows_(std::min(rows, max_rows)) {}

    void start() {
        if (rows_ == 0) return refuse({});
        base_ = known().settings().prefix + std::string(records_prefix);
        request_ = link().keys(base_ + prefix_, by_, then(&scanning::listed));
    }

private:
    void listed(std::error_code error, std::vector<std::string> keys) {
        if (error) return finish(error, {});
        std::sort(keys.begin(), keys.end());
        std::erase_if(keys, [&](const std::string& key) {
            return !from_.empty() && key.compare(base_.size(), key.npos, from_) <= 0;
        });
        keys_ = std::move(keys);
        read();
    }
    void read() {
        const auto n = std::min({reads_at_once, keys_.size() - next_, rows_ - out_.rows.size()});
        const auto first = keys_.begin() + static_cast<std::ptrdiff_t>(next_);
        request_ = read_keys(known_ptr(), {first, first + static_cast<std::ptrdiff_t>(n)}, by_,
                             then(&scanning::found));
        next_ += n;
    }
    void found(std::error_code error, found_keys found) {
        if (error) return finish(error, {});
        for (auto& kv : found) {
            if (!kv) continue;
            const auto now = now_second(known());
            if (has_expired(*kv, now - swept_after.count())) expired_.push_back(*kv);
            if (has_expired(*kv, now)) continue;
            keyed_record row;
            row.key = kv->key.substr(base_.size());
            row.value = std::move(kv->value);
            row.revision = kv->modify_index;
            bytes_ += row.value.size();
            out_.rows.push_back(std::move(row));
        }
        const bool last = next_ == keys_.size();
        const bool full = out_.rows.size() == rows_ || bytes_ >= max_page;
        if (last || full || expired_.size() + reads_at_once > most_swept) sweep();
        if (!last && !full) return read();
        if (!last) out_.next = keys_[next_ - 1].substr(base_.size());
        finish({}, std::move(out_));
    }
    // All of them, or none where one was written anew meanwhile: the next scan comes to the others.
    void sweep() {
        if (expired_.empty()) return;
        txn_request ask;
        for (auto& kv : std::exchange(expired_, {})) {
            operation away;
            away.verb = operation::verb_t::erase_cas;
            away.key = std::move(kv.key);
            away.index = kv.modify_index;
            ask.operations.push_back(std::move(away));
        }
        erase_in_background(known_ptr(), ask);
    }

    const std::string prefix_;
    const std::string from_;
    const std::size_t rows_;
    std::string base_;
    std::vector<std::string> keys_;
    std::size_t next_ = 0;
    std::size_t bytes_ = 0;
    std::vector<key_value> expired_;  // not swept yet
    records out_;
};

}  // namespace

op write_records(const claims_ptr& known, std::string_view lease, std::optional<claim_id> guard,
                 std::span<const change> changes, std::chrono::seconds keep, deadline by,
                 completion<std::uint64_t> done) {
    return writing::begin(known, by, std::move(done), lease, guard, changes, keep);
}

op read_record(const claims_ptr& known, std::string_view key, deadline by,
               completion<std::optional<record>> done) {
    return reading::begin(known, by, std::move(done), key);
}

op scan_records(const claims_ptr& known, std::string_view prefix, std::string_view from,
                std::size_t rows, deadline by, completion<records> done) {
    return scanning::begin(known, by, std::move(done), prefix, from, rows);
}

}  // namespace trinco::detail::consul
