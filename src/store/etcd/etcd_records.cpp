// Records, under trinco:records/, and the data of users, under their own names: changed in one
// transaction that compares revisions and, with a guard, that the claim's entries are still those
// which were granted.
//
// `keep` is a lease. Records that are written within a sixteenth of it share one, which lasts as
// much longer, so that a day of a thousand records costs etcd a few leases.
#include <algorithm>

#include "core/lock/data_key.hpp"
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr std::size_t max_changes = 64;
constexpr std::size_t max_key = 512;
constexpr std::size_t max_value = 128 * 1'024;
constexpr std::size_t max_bytes = 1'024 * 1'024;  // the server takes 1.5 MiB
constexpr std::size_t max_rows = 1'000;
constexpr std::int64_t scan_rows = 16;  // of the largest records still one message
constexpr std::chrono::seconds max_keep{86'400LL * 366};
constexpr int shares = 16;

std::string stored_key(const claims& known, std::string_view key) {
    const auto& prefix = known.settings().prefix;
    if (is_data_key(key)) return prefix + std::string(key);
    return prefix + std::string(records_prefix) + std::string(key);
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
        if (!guard_) return find_keep();
        const auto slot = known().slots.find(lease_, *guard_);
        if (!slot) return refuse(errc::lost);
        slot_ = *slot;
        const auto* c = known().find(lease_, slot_);
        if (c != nullptr && !c->tokens.empty() && remember_claim()) return find_keep();
        request_ = look_at(known_ptr(), lease_, slot_, by_, then(&writing::seen));
    }

private:
    void seen(std::error_code error, claim_view v) {
        if (error) return finish(error, 0);
        if (!v.granted() || !remember_claim()) return finish(errc::lost, 0);
        find_keep();
    }

    // The entries that were granted, by which it is compared however long it takes until it is
    // sent: the number of a claim that has left meanwhile may be another's by then.
    bool remember_claim() {
        if (known().slots.find(lease_, *guard_) != slot_) return false;
        const auto* c = known().find(lease_, slot_);
        const auto number = lease_number(lease_);
        if (c == nullptr || !number || c->created == 0) return false;
        for (const auto& p : c->parts) own_keys_.push_back(entry_key(p.name, *number, slot_));
        created_ = c->created;
        return true;
    }

    void find_keep() {
        const bool puts = std::any_of(changes_.begin(), changes_.end(),
                                      [](const change& one) { return one.value.has_value(); });
        if (keep_.count() == 0 || !puts) return send(0);
        const auto young = known().record_leases().find(keep_);
        if (young != known().record_leases().end() && known().on().now() < young->second.until) {
            return send(young->second.id);
        }
        fresh_ = true;
        asked_ = known().on().now();
        request_ = link().grant(keep_ + keep_ / shares, by_, then(&writing::kept));
    }
    void kept(std::error_code error, lease_reply reply) {
        // Without a lease nothing was written, and one that nobody uses ends by itself.
        if (error) return finish(error == errc::unknown_outcome ? errc::unavailable : error, 0);
        known().keep_record_lease(keep_, {reply.id, asked_ + keep_ / shares});
        send(reply.id);
    }

    void send(std::int64_t keeps) {
        txn_request ask;
        for (const auto& key : own_keys_) {
            comparison same{{key, {}}};
            same.number = created_;
            ask.compare.push_back(same);
            ask.failure.emplace_back(range_request{{key, {}}, 1, {}, {}, true});
        }
        for (const auto& one : changes_) {
            const auto key = stored_key(known(), one.key);
            if (one.if_revision != any_revision) {
                comparison same{{key, {}}};
                same.target = comparison::target_t::mod_revision;
                same.number = static_cast<std::int64_t>(one.if_revision);
                ask.compare.push_back(same);
            }
            if (one.value) {
                ask.success.emplace_back(put_request{key, *one.value, keeps});
            } else {
                ask.success.emplace_back(erase_request{{key, {}}});
            }
        }
        keeps_ = keeps;
        request_ = link().txn(ask, by_, then(&writing::written));
    }

    void written(std::error_code error, txn_reply reply) {
        if (error == errc::lost && keeps_ != 0) {
            // The lease of the record has ended, as after a restored snapshot; a new one once.
            known().drop_record_lease(keep_);
            if (!std::exchange(fresh_, true)) return find_keep();
            return finish(errc::busy, 0);
        }
        if (error) return finish(error, 0);
        if (reply.succeeded) return finish({}, static_cast<std::uint64_t>(reply.revision));
        for (std::size_t i = 0; i < own_keys_.size(); ++i) {
            const auto& kvs = reply.replies.at(i).kvs;
            if (kvs.empty() || kvs.front().create_revision != created_) {
                return finish(errc::lost, 0);
            }
        }
        finish(errc::conflict, 0);
    }

    const std::string lease_;
    const std::optional<claim_id> guard_;
    const std::vector<change> changes_;
    const std::chrono::seconds keep_;
    boot_clock::time_point asked_;
    std::int64_t keeps_ = 0;
    claim_id slot_;
    std::int64_t created_ = 0;
    std::vector<std::string> own_keys_;  // entries of the claim
    bool fresh_ = false;
};

class reading : public conversation<reading, std::optional<record>> {
public:
    explicit reading(std::string key) : key_(std::move(key)) {}
    void start() {
        txn_request ask;
        ask.success.emplace_back(range_request{{key_, {}}});
        request_ = link().txn(ask, by_, then(&reading::seen));
    }

private:
    void seen(std::error_code error, txn_reply reply) {
        if (error || reply.replies.at(0).kvs.empty()) return finish(error, {});
        auto& kv = reply.replies.at(0).kvs.front();
        finish({}, record{std::move(kv.value), static_cast<std::uint64_t>(kv.mod_revision)});
    }
    const std::string key_;
};

class scanning : public conversation<scanning, records> {
public:
    scanning(std::string_view prefix, std::string_view from, std::size_t rows)
        : prefix_(prefix), next_(from), rows_(std::min(rows, max_rows)) {}

    void start() {
        if (rows_ == 0) return refuse({});
        base_ = known().settings().prefix + std::string(records_prefix);
        read();
    }

private:
    void read() {
        range_request all;
        all.keys = all_under(base_ + prefix_);
        // The first key behind the last one seen.
        if (next_ >= prefix_ && !next_.empty()) all.keys.begin = base_ + next_ + '\0';
        all.limit =
            std::min<std::int64_t>(scan_rows, static_cast<std::int64_t>(rows_ - out_.rows.size()));
        txn_request ask;
        ask.success.emplace_back(all);
        request_ = link().txn(ask, by_, then(&scanning::seen));
    }
    void seen(std::error_code error, txn_reply reply) {
        if (error) return finish(error, {});
        auto& page = reply.replies.at(0);
        for (auto& kv : page.kvs) {
            keyed_record row;
            row.key = kv.key.substr(base_.size());
            row.value = std::move(kv.value);
            row.revision = static_cast<std::uint64_t>(kv.mod_revision);
            next_ = row.key;
            bytes_ += row.value.size();
            out_.rows.push_back(std::move(row));
        }
        if (page.more && out_.rows.size() < rows_ && bytes_ < max_bytes) return read();
        if (page.more) out_.next = next_;
        finish({}, std::move(out_));
    }

    const std::string prefix_;
    std::string base_;
    std::string next_;
    const std::size_t rows_;
    std::size_t bytes_ = 0;
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
    return reading::begin(known, by, std::move(done), stored_key(*known, key));
}

op scan_records(const claims_ptr& known, std::string_view prefix, std::string_view from,
                std::size_t rows, deadline by, completion<records> done) {
    return scanning::begin(known, by, std::move(done), prefix, from, rows);
}

}  // namespace trinco::detail::etcd
