// Listing: the keys under a prefix alone are walked; values and leases are read of the rows that
// are shown, and of what is before them in their queues.
//
// Names come in the order of NAME/, in which the keys lie. A name is complete once a key behind all
// of NAME/ was seen, so that a page needs no more keys than its rows, whatever follows.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr std::size_t longest_info = 4'096;
constexpr std::size_t max_rows = 1'000;
constexpr std::int64_t keys_at_once = 2'000;
constexpr std::size_t most_keys = 200'000;  // walked for one page
constexpr std::size_t values_at_once = 64;
constexpr std::size_t leases_at_once = 64;

class listing : public conversation<listing, entries> {
public:
    listing(std::string prefix, std::string_view from, std::size_t rows)
        : prefix_(std::move(prefix)), from_(from), rows_(std::min(rows, max_rows)) {}

    void start() {
        if (!read_cursor()) return refuse(errc::invalid);
        if (rows_ == 0) return refuse({});
        auto begin = std::max(prefix_, after_.empty() ? after_ : after_ + '/');
        if (begin.empty()) begin.push_back('\0');  // the least key there is
        walk(begin);
    }

private:
    struct found {
        std::int64_t created = 0;
        std::string key;
        std::int64_t lease = 0;
    };
    struct wanted {
        found at;
        std::string name;
        bool shown = false;  // else it only stands before one that is
    };

    // A page ends with the create_revision and the name of its last row.
    bool read_cursor() {
        if (from_.empty()) return true;
        const auto blank = from_.find(' ');
        if (blank == std::string::npos) return false;
        after_ = known().settings().prefix + from_.substr(blank + 1);
        const auto* const text = from_.data();
        return std::from_chars(text, text + blank, after_created_).ptr == text + blank;
    }

    void walk(std::string begin) {
        range_request keys;
        keys.keys = {std::move(begin), all_under(prefix_).end};
        keys.limit = keys_at_once;
        keys.keys_only = true;
        txn_request ask;
        ask.success.emplace_back(std::move(keys));
        request_ = link().txn(ask, by_, then(&listing::walked));
    }

    void walked(std::error_code error, txn_reply reply) {
        if (error) return finish(error, {});
        const auto& page = reply.replies.at(0);
        const auto records = known().settings().prefix + std::string(records_prefix);
        for (const auto& kv : page.kvs) {
            const auto place = entry_of(kv);
            if (!place || !place->name.starts_with(prefix_)) continue;
            const auto folder = place->name + '/';
            const bool told_before = !after_.empty() && folder < after_ + '/';
            if (told_before || folder.starts_with(records)) continue;
            queues_[folder].push_back({kv.create_revision, kv.key, kv.lease});
        }
        walked_ += page.kvs.size();
        if (page.more && !enough_before(page.kvs.back().key)) {
            if (walked_ > most_keys) return finish(errc::busy, {});
            return walk(page.kvs.back().key + '\0');
        }
        choose(page.more ? first_incomplete(page.kvs.back().key) : std::string());
        read_values();
    }

    // The least NAME/ that may have more keys behind this one: one that the key lies in.
    [[nodiscard]] std::string first_incomplete(const std::string& key) const {
        for (auto slash = key.find('/', 1); slash != std::string::npos;
             slash = key.find('/', slash + 1)) {
            const auto folder = key.substr(0, slash + 1);
            if (folder.size() > prefix_.size() && folder > after_) return folder;
        }
        return key;
    }
    [[nodiscard]] bool enough_before(const std::string& key) const {
        const auto end = first_incomplete(key);
        std::size_t n = 0;
        for (const auto& [folder, all] : queues_) {
            if (folder >= end) break;
            n += std::count_if(all.begin(), all.end(),
                               [&, f = &folder](const found& one) { return is_after(*f, one); });
        }
        return n > rows_;
    }
    [[nodiscard]] bool is_after(const std::string& folder, const found& one) const {
        return folder != after_ + '/' || one.created > after_created_;
    }

    // The rows of the page, each queue from its head on. An empty end: all is complete.
    void choose(const std::string& end) {
        std::size_t shown = 0;
        for (auto& [folder, all] : queues_) {
            if (!end.empty() && folder >= end) break;
            std::sort(all.begin(), all.end(),
                      [](const found& a, const found& b) { return a.created < b.created; });
            for (auto& one : all) {
                const bool shows = is_after(folder, one);
                if (shows && shown == rows_) {
                    next_ = cursor_;
                    break;
                }
                const auto name = folder.substr(0, folder.size() - 1);
                if (shows) {
                    ++shown;
                    cursor_ = std::to_string(one.created) + ' ' +
                              name.substr(known().settings().prefix.size());
                }
                wanted_.push_back({std::move(one), name, shows});
            }
            if (!next_.empty()) break;
        }
        queues_.clear();
    }

    void read_values() {
        const auto done = values_.size();
        if (done == wanted_.size()) return judge_rows();
        txn_request ask;
        for (auto i = done; i < std::min(done + values_at_once, wanted_.size()); ++i) {
            ask.success.emplace_back(range_request{{wanted_[i].at.key, {}}});
        }
        request_ = link().txn(ask, by_, then(&listing::valued));
    }
    void valued(std::error_code error, txn_reply reply) {
        if (error) return finish(error, {});
        for (auto& one : reply.replies) {
            values_.push_back(one.kvs.empty() ? key_value() : std::move(one.kvs.front()));
        }
        read_values();
    }

    void judge_rows() {
        std::string name;
        turn_rule rule;
        for (std::size_t i = 0; i < wanted_.size(); ++i) {
            const auto& w = wanted_[i];
            if (std::exchange(name, w.name) != w.name || i == 0) rule = {};
            const auto& kv = values_[i];
            const auto place = entry_of(kv);
            if (!place || kv.create_revision != w.at.created) continue;  // gone meanwhile
            const auto asks = seat_of(kv.value);
            const bool holds = rule.has_turn(asks);
            rule.pass(asks);
            if (!w.shown) continue;
            auto row = row_of(known(), kv, *place);
            row.holds = holds;
            if (!holds) {
                row.token = 0;
                row.held.reset();
            }
            leases_.insert(kv.lease);
            row_leases_.push_back(kv.lease);
            rows_out_.push_back(std::move(row));
        }
        read_leases();
    }

    void read_leases() {
        facts_.clear();
        for (std::size_t i = 0; i < leases_at_once && !leases_.empty(); ++i) {
            const auto lease = *leases_.begin();
            leases_.erase(leases_.begin());
            ++asked_;
            facts_.push_back(link().facts(
                lease, false, by_,
                [weak = weak_from_this(), lease](std::error_code error, const lease_facts& f) {
                    const auto self = weak.lock();
                    if (self && !self->over()) self->lease_read(lease, error, f);
                }));
        }
        if (asked_ == 0) answer();
    }
    void lease_read(std::int64_t lease, std::error_code error, const lease_facts& f) {
        if (!error && f.ttl > std::chrono::seconds(0)) left_[lease] = f.ttl;
        if (--asked_ == 0) read_leases();
    }

    void answer() {
        for (std::size_t i = 0; i < rows_out_.size(); ++i) {
            rows_out_[i].left = left_[row_leases_[i]];
        }
        finish({}, entries{std::move(rows_out_), std::move(next_)});
    }

    const std::string prefix_;
    const std::string from_;
    const std::size_t rows_;
    std::string after_;  // the last name of the page before
    std::int64_t after_created_ = 0;
    std::map<std::string, std::vector<found>> queues_;  // by NAME/
    std::size_t walked_ = 0;
    std::vector<wanted> wanted_;
    std::vector<key_value> values_;  // of wanted_
    std::string cursor_;
    std::string next_;
    std::vector<entry> rows_out_;
    std::vector<std::int64_t> row_leases_;
    std::set<std::int64_t> leases_;
    std::size_t asked_ = 0;
    std::vector<op> facts_;
    std::map<std::int64_t, std::chrono::seconds> left_;
};

}  // namespace

entry row_of(const claims& known, const key_value& kv, const entry_place& at) {
    entry out;
    out.name = at.name.substr(known.settings().prefix.size());
    out.handle = entry_handle(kv);
    const auto ago = [now = known.wall_ms()](std::int64_t then) {
        return std::chrono::milliseconds(std::max<std::int64_t>(now - then, 0));
    };
    auto note = note_of(kv.value);
    if (!note) {
        // What a leader proclaims, or Go's nothing. Its holder's token is not known here.
        if (kv.value.size() <= longest_info) out.info = kv.value;
        return out;
    }
    out.kind = note->asks.kind;
    out.n = note->asks.n;
    out.info = std::move(note->info);
    out.since = ago(note->since);
    if (note->held != 0) out.held = ago(note->held);
    out.evicted = std::move(note->evicted);
    if (out.kind == claim_kind::exclusive) {
        // Who was granted as it entered has that revision's; who has waited has a larger one, which
        // nobody else knows yet.
        const bool at_once = note->held != 0 && note->held == note->since;
        out.token = note->token == 0 && at_once ? known.token_at(kv.create_revision) : note->token;
    }
    return out;
}

op list_entries(const claims_ptr& known, std::string_view prefix, std::string_view from,
                std::size_t rows, deadline by, completion<entries> done) {
    return listing::begin(known, by, std::move(done),
                          known->settings().prefix + std::string(prefix), from, rows);
}

}  // namespace trinco::detail::etcd
