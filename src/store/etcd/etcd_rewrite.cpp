// Rewriting the notes of entries: read, change, and put back on condition that nobody else did
// meanwhile. The entry stays where it is: its create_revision is its place. Whatever is changed,
// the notes of a granted claim then tell since when it is, and its token.
#include <charconv>

#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr int most_attempts = 16;  // when others rewrite meanwhile

// Puts back what was read, if it is still so.
void put_back(txn_request& ask, const key_value& read, std::string value) {
    comparison same{{read.key, {}}};
    same.target = comparison::target_t::mod_revision;
    same.number = read.mod_revision;
    ask.compare.push_back(same);
    ask.success.emplace_back(put_request{read.key, std::move(value), read.lease});
}

class rewriting : public conversation<rewriting, int> {
public:
    rewriting(std::string_view lease, claim_id id, unique_function<void(owner_note&)> change)
        : lease_(lease), id_(id), change_(std::move(change)) {}

    void start() {
        if (const auto* c = known().find(lease_, id_)) created_ = c->created;
        look();
    }

private:
    void look() {
        request_ = look_at(known_ptr(), lease_, id_, by_, then(&rewriting::seen), created_);
    }
    void seen(std::error_code error, claim_view v) {
        if (error) return finish(error, 0);
        if (created_ == 0) created_ = v.created();
        const auto* c = known().find(lease_, id_);
        // Its number may be another's by now, who is not to say what this one said.
        if (c == nullptr || c->created != created_) return finish(errc::lost, 0);
        // There is no room in it for more than its owner says.
        if (c->bare && !change_) return finish({}, 0);
        txn_request ask;
        for (std::size_t i = 0; i < v.own.size(); ++i) {
            if (c->bare) {
                owner_note said;
                change_(said);
                if (note_of(said.info)) return finish(errc::invalid, 0);
                put_back(ask, v.own[i], std::move(said.info));
                continue;
            }
            auto note = note_of(v.own[i].value);
            if (!note) return finish(errc::lost, 0);  // it is not ours any more
            note->held = c->held;
            note->token = c->tokens.empty() ? 0 : c->tokens.at(i);
            if (change_) change_(*note);
            put_back(ask, v.own[i], text_of(*note));
        }
        request_ = link().txn(ask, by_, then(&rewriting::written));
    }
    void written(std::error_code error, txn_reply reply) {
        if (error) return finish(error, 0);
        if (reply.succeeded) return finish({}, 0);
        if (++attempts_ == most_attempts) return finish(errc::busy, 0);
        look();
    }

    const std::string lease_;
    const claim_id id_;
    unique_function<void(owner_note&)> change_;
    std::int64_t created_ = 0;  // the revision of the entries meant; 0: of those that are found
    int attempts_ = 0;
};

class evicting : public conversation<evicting, int> {
public:
    evicting(std::string key, std::int64_t created, bool now, eviction asked)
        : key_(std::move(key)), created_(created), now_(now), asked_(std::move(asked)) {}

    void start() { now_ ? erase() : read(); }

private:
    void erase() {
        txn_request ask;
        comparison same{{key_, {}}};
        same.number = created_;
        ask.compare.push_back(same);
        ask.success.emplace_back(erase_request{{key_, {}}});
        ask.failure.emplace_back(range_request{{key_, {}}});
        request_ = link().txn(ask, by_, then(&evicting::erased));
    }
    void erased(std::error_code error, txn_reply reply) {
        if (error || reply.succeeded) return finish(error, 0);
        finish(reply.replies.at(0).kvs.empty() ? errc::lost : errc::conflict, 0);
    }

    void read() {
        txn_request ask;
        ask.success.emplace_back(range_request{{key_, {}}});
        request_ = link().txn(ask, by_, then(&evicting::seen));
    }
    void seen(std::error_code error, txn_reply reply) {
        if (error) return finish(error, 0);
        const auto& kvs = reply.replies.at(0).kvs;
        if (kvs.empty()) return finish(errc::lost, 0);
        if (kvs.front().create_revision != created_) return finish(errc::conflict, 0);
        auto note = note_of(kvs.front().value);
        if (!note) return finish(errc::not_supported, 0);
        note->evicted = asked_;
        txn_request ask;
        put_back(ask, kvs.front(), text_of(*note));
        request_ = link().txn(ask, by_, then(&evicting::marked));
    }
    void marked(std::error_code error, txn_reply reply) {
        if (error) return finish(error, 0);
        if (reply.succeeded) return finish({}, 0);
        if (++attempts_ == most_attempts) return finish(errc::busy, 0);
        read();
    }

    const std::string key_;
    const std::int64_t created_;
    const bool now_;
    const eviction asked_;
    int attempts_ = 0;
};

}  // namespace

op rewrite_claim(const claims_ptr& known, std::string_view lease, claim_id id,
                 unique_function<void(owner_note&)> change, deadline by, completion<int> done) {
    return rewriting::begin(known, by, std::move(done), lease, id, std::move(change));
}

// LEASE/CREATED KEY: create_revision and key together are one entry and no other; the lease in
// front says whose it is, as in all stores.
std::string entry_handle(const key_value& kv) {
    return lease_text(kv.lease) + '/' + std::to_string(kv.create_revision) + ' ' + kv.key;
}

op evict_entry(const claims_ptr& known, const entry& seen, bool now, const eviction& asked,
               deadline by, completion<int> done) {
    const auto slash = seen.handle.find('/');
    const auto blank = seen.handle.find(' ');
    std::int64_t created = 0;
    const auto* const text = seen.handle.data();
    const bool sound =
        blank != std::string::npos && slash < blank && asked.is_sound() &&
        std::from_chars(text + slash + 1, text + blank, created).ptr == text + blank &&
        created > 0 && place_of_key(std::string_view(seen.handle).substr(blank + 1));
    if (!sound) {
        return known->on().at(known->on().now(),
                              [done = std::move(done)]() mutable { done(errc::invalid, 0); });
    }
    return evicting::begin(known, by, std::move(done), seen.handle.substr(blank + 1), created, now,
                           asked);
}

}  // namespace trinco::detail::etcd
