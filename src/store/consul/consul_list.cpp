// Listing: the keys under a prefix are asked for by name alone, and those of the rows that are
// shown are read, with their sessions. Of a semaphore the key that lists the holders comes first,
// and its holders after it, a row each.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "store/consul/consul_calls.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::size_t longest_info = 4'096;
constexpr std::size_t max_rows = 1'000;
constexpr std::size_t sessions_at_once = 64;

class listing : public conversation<listing, entries> {
public:
    listing(std::string_view prefix, std::string_view from, std::size_t rows)
        : prefix_(prefix), from_(from), rows_(std::min(rows, max_rows)) {}

    void start() {
        if (rows_ == 0) return refuse({});
        request_ = link().keys(known().settings().prefix + prefix_, by_, then(&listing::listed));
    }

private:
    struct named {
        std::string name;
        std::string session;  // of a permit's holder; else empty
        std::string key;
    };
    struct holders {
        std::string name;
        semaphore_holders said;
    };
    static constexpr char behind_name = '\n';  // in what tells where a page ended

    // A page ends with the name of its last row, and with its session.
    void listed(std::error_code error, std::vector<std::string> keys) {
        if (error) return finish(error, {});
        const auto& s = known().settings();
        const auto records = s.prefix + std::string(records_prefix);
        for (auto& key : keys) {
            if (key.starts_with(records)) continue;
            if (auto who = contender_of_key(s.prefix, key)) {
                add({std::move(who->name), std::move(who->session), key});
            }
            const auto mutex = name_of_key(s.prefix, key, s.plain_keys);
            const auto semaphore = name_of_key(s.prefix, key, false);
            if (mutex) add({*mutex, {}, key});
            if (semaphore && semaphore != mutex) add({*semaphore, {}, key});
        }
        std::sort(names_.begin(), names_.end(), [](const named& a, const named& b) {
            return std::tie(a.name, a.session, a.key) < std::tie(b.name, b.session, b.key);
        });
        const bool is_there = std::any_of(names_.begin(), names_.end(),
                                          [&](const named& one) { return one.name == prefix_; });
        const bool is_a_name = !prefix_.empty() && prefix_.back() != '/';
        if (is_there || !is_a_name || !from_.empty()) return read();
        hidden_ = {s.prefix + prefix_ + "/.lock"};
        if (s.plain_keys) hidden_.push_back(s.prefix + prefix_);
        look_whether_it_may_be_read();
    }
    void add(named one) {
        if (!one.name.starts_with(prefix_)) return;
        const auto end = from_.find(behind_name);
        const bool inside = end != std::string::npos;
        const auto from = from_.substr(0, end);
        // Who has permits is read again for the rest of its holders.
        const bool rest = inside && one.name == from &&
                          (one.session.empty() || one.session > from_.substr(end + 1));
        if (!from_.empty() && one.name <= from && !rest) return;
        names_.push_back(std::move(one));
    }
    // A key that may not be read is left out of what is listed, in silence; asked for by its name
    // it is refused. So nobody who asks for one lock is told that it is free.
    void look_whether_it_may_be_read() {
        if (hidden_.empty()) return read();
        request_ = link().read({hidden_.back(), false, true}, by_, then(&listing::one_read));
    }
    void one_read(std::error_code error, const read_reply&) {
        if (error && error != errc::denied && error != errc::invalid) return finish(error, {});
        name_is_hidden_ = error == errc::denied;
        if (name_is_hidden_) {
            known().say(errc::denied, "the token may not read '" + hidden_.back() + "' (key:read)");
        }
        hidden_.pop_back();
        name_is_hidden_ ? look_whether_it_may_be_read() : read();
    }
    void read() {
        if (next_ == names_.size() || kept_.size() == rows_) return read_sessions();
        first_ = next_;
        std::vector<std::string> keys;
        while (next_ < names_.size() &&
               keys.size() < std::min(most_operations, rows_ - kept_.size())) {
            keys.push_back(names_[next_++].key);
        }
        request_ = read_keys(known_ptr(), std::move(keys), by_, then(&listing::found));
    }
    void found(std::error_code error, found_keys keys) {
        if (error) return finish(error, {});
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (keys[i]) keep(names_[first_ + i], *keys[i]);
        }
        read();
    }
    void keep(const named& at, const key_value& kv) {
        if (kv.flags == semaphore_flags && at.session.empty()) {
            holders_ = {at.name, holders_of(kv.value).value_or(semaphore_holders())};
            return;
        }
        if (kv.session.empty()) return;
        if (kv.flags != semaphore_flags && at.session.empty() &&
            kv.key == known().key_of(at.name)) {
            return keep(row_of(known(), kv, at.name), kv.session);
        }
        const bool holds = kv.flags == semaphore_flags && kv.session == at.session &&
                           holders_.name == at.name && holders_.said.sessions.contains(at.session);
        if (!holds) return;
        auto row = row_of(known(), kv, at.name);
        row.kind = claim_kind::permit;
        row.n = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
            holders_.said.limit, 0, std::numeric_limits<std::int32_t>::max()));
        row.token = 0;
        keep(std::move(row), kv.session);
    }
    void keep(entry row, const std::string& session) {
        sessions_.insert(session);
        row_sessions_.push_back(session);
        kept_.push_back(std::move(row));
    }

    void read_sessions() {
        facts_.clear();
        for (std::size_t i = 0; i < sessions_at_once && !sessions_.empty(); ++i) {
            const auto session = *sessions_.begin();
            sessions_.erase(sessions_.begin());
            ++asked_;
            facts_.push_back(
                link().facts(session, by_,
                             [weak = weak_from_this(), session](
                                 std::error_code error, const std::optional<session_facts>& f) {
                                 const auto self = weak.lock();
                                 if (self && !self->over()) self->session_read(session, error, f);
                             }));
        }
        if (asked_ == 0) answer_all();
    }
    void session_read(const std::string& session, std::error_code error,
                      const std::optional<session_facts>& f) {
        if (error && error != errc::denied) failed_ = error;
        if (!error && f) facts_of_[session] = *f;
        if (--asked_ == 0) read_sessions();
    }

    void answer_all() {
        if (failed_) return finish(failed_, {});
        entries out;
        out.name_is_hidden = name_is_hidden_;
        for (std::size_t i = 0; i < kept_.size(); ++i) {
            add_session(kept_[i], facts_of_[row_sessions_[i]]);
        }
        if (next_ < names_.size()) {
            const auto& last = names_[next_ - 1];
            out.next = last.name;
            if (names_[next_].name == last.name) out.next += behind_name + last.session;
        }
        out.rows = std::move(kept_);
        finish({}, std::move(out));
    }

    const std::string prefix_;
    const std::string from_;
    const std::size_t rows_;
    std::vector<named> names_;
    std::vector<std::string> hidden_;  // keys of the one name, to be asked for
    bool name_is_hidden_ = false;
    std::size_t first_ = 0;
    std::size_t next_ = 0;
    holders holders_;
    std::vector<entry> kept_;
    std::vector<std::string> row_sessions_;
    std::set<std::string> sessions_;
    std::size_t asked_ = 0;
    std::vector<op> facts_;
    std::map<std::string, session_facts> facts_of_;
    std::error_code failed_;
};

}  // namespace

entry row_of(const claims& known, const key_value& kv, std::string name) {
    entry out;
    out.name = std::move(name);
    out.handle = handle_of(kv);
    out.holds = true;
    out.token = known.token_at(kv.modify_index);
    auto note = note_of(kv.value);
    if (!note) {
        // What a leader proclaims, or what Go's holder says.
        if (kv.value.size() <= longest_info) out.info = kv.value;
        return out;
    }
    const auto ago = [now = known.wall_ms()](std::int64_t then) {
        return std::chrono::milliseconds(std::max<std::int64_t>(now - then, 0));
    };
    out.info = std::move(note->info);
    out.since = ago(note->since);
    out.held = ago(note->held);
    out.evicted = std::move(note->evicted);
    if (note->token != 0) out.token = note->token;
    return out;
}

void add_session(entry& row, const session_facts& of) {
    row.left = of.ttl;
    row.left_is_whole = true;
    // `consul lock` says nothing in its key; its session has the command in its name.
    row.lease_label = of.name;
    if (!of.node.empty()) row.lease_label += (of.name.empty() ? "node " : " on node ") + of.node;
}

op list_entries(const claims_ptr& known, std::string_view prefix, std::string_view from,
                std::size_t rows, deadline by, completion<entries> done) {
    return listing::begin(known, by, std::move(done), prefix, from, rows);
}

}  // namespace trinco::detail::consul
