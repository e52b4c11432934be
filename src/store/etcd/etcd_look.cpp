#include "store/etcd/etcd_look.hpp"

#include <algorithm>

#include "core/mutant.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

class finding_parts : public conversation<finding_parts, std::vector<part>> {
public:
    finding_parts(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    void start() {
        number_ = lease_number(lease_);
        if (!number_) return refuse(errc::lost);
        request_ = link().facts(*number_, true, by_, then(&finding_parts::listed));
    }

private:
    void listed(std::error_code error, lease_facts facts) {
        if (error) return finish(error, {});
        txn_request read;
        for (const auto& key : facts.keys) {
            const auto place = place_of_key(key);
            if (!place || place->lease != *number_ || place->id != id_) continue;
            parts_.push_back({place->name, claim_kind::exclusive, 0});
            read.success.emplace_back(range_request{{key, {}}});
        }
        if (facts.ttl < std::chrono::seconds(0) || parts_.empty()) return finish(errc::lost, {});
        request_ = link().txn(read, by_, then(&finding_parts::kinds));
    }
    void kinds(std::error_code error, txn_reply reply) {
        if (error) return finish(error, {});
        bool bare = false;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const auto& kvs = reply.replies.at(i).kvs;
            if (kvs.empty()) return finish(errc::lost, {});
            const auto asks = seat_of(kvs.front().value);
            parts_[i].kind = asks.kind;
            parts_[i].n = asks.n;
            bare = bare || !note_of(kvs.front().value);
        }
        std::sort(parts_.begin(), parts_.end(),
                  [](const part& a, const part& b) { return a.name < b.name; });
        auto& c = known().lease(lease_).claims[id_];
        c.parts = parts_;
        c.bare = bare;
        finish({}, parts_);
    }

    const std::string lease_;
    const claim_id id_;
    std::optional<std::int64_t> number_;
    std::vector<part> parts_;
};

class looking : public conversation<looking, claim_view> {
public:
    looking(std::string_view lease, claim_id id, std::int64_t created)
        : lease_(lease), id_(id), number_(lease_number(lease)), created_(created) {}

    void start() {
        const auto* c = known().find(lease_, id_);
        const bool replaced = c != nullptr && created_ != 0 && c->created != created_;
        if (!number_ || replaced) return refuse(errc::lost);
        if (c == nullptr) {
            request_ = parts_of(known_ptr(), lease_, id_, by_, then(&looking::begin_with));
            return;
        }
        created_ = c->created;
        begin_with({}, c->parts);
    }

private:
    void begin_with(std::error_code error, std::vector<part> parts) {
        if (error) return finish(error, {});
        for (auto& p : parts) {
            scans_.emplace_back(turn_question{p.name, {p.kind, p.n}, created_});
        }
        read();
    }

    void read() {
        txn_request what;
        for (const auto& one : scans_) {
            what.success.emplace_back(
                range_request{{entry_key(one.question().name, *number_, id_), {}}});
        }
        const auto open = unfinished();
        for (auto* one : open) what.success.emplace_back(one->next(open.size()));
        request_ = link().txn(what, by_, then(&looking::seen));
    }

    void seen(std::error_code error, txn_reply reply) {
        if (error) return finish(error, {});
        claim_view out;
        out.revision = reply.revision;
        if (since_ == 0) since_ = reply.revision;
        out.since = since_;
        for (std::size_t i = 0; i < scans_.size(); ++i) {
            if (own_entry(reply.replies.at(i), scans_[i], out)) continue;
            // By now its number may be that of another claim, of which nothing is to be forgotten.
            const auto* c = known().find(lease_, id_);
            if (c != nullptr && c->created == created_) known().forget(lease_, id_);
            return finish(errc::lost, {});
        }
        auto page = reply.replies.begin() + static_cast<std::ptrdiff_t>(scans_.size());
        for (auto* one : unfinished()) one->take(*page++);
        if (!unfinished().empty()) return read();
        for (const auto& one : scans_) out.parts.push_back(one.result());
        remember(out);
        finish({}, std::move(out));
    }

    [[nodiscard]] std::vector<queue_scan*> unfinished() {
        std::vector<queue_scan*> out;
        for (auto& one : scans_) {
            if (!one.done()) out.push_back(&one);
        }
        return out;
    }

    // Whether the claim's entry is there and is the one that it made.
    bool own_entry(const operation_reply& own, queue_scan& at, claim_view& out) {
        const auto mine = at.question().mine;
        const bool there = !own.kvs.empty() && own.kvs.front().lease == *number_ &&
                           (mine == 0 || own.kvs.front().create_revision == mine);
        if (!there) return TRINCO_MUTANT("etcd_waiter_unconfirmed") && mine != 0;
        at.is_mine(own.kvs.front().create_revision);
        const auto note = note_of(own.kvs.front().value);
        if (note && note->evicted) out.evicted = note->evicted;
        out.own.push_back(own.kvs.front());
        return true;
    }

    void remember(const claim_view& v) {
        auto* c = known().find(lease_, id_);
        const auto mine = scans_.front().question().mine;
        // Left meanwhile, or another claim has its number: perhaps one that is still entering.
        if (c == nullptr || (c->created != 0 && c->created != mine) || !was_asked(c->parts)) return;
        c->created = mine;
        if (!v.evicted) c->unmarked = v.revision;
        if (!v.granted() || !c->tokens.empty()) return;
        c->tokens = tokens_of(known(), *c, v.revision);
        c->held = known().wall_ms();
    }

    [[nodiscard]] bool was_asked(const std::vector<part>& parts) const {
        return std::equal(
            parts.begin(), parts.end(), scans_.begin(), scans_.end(),
            [](const part& p, const queue_scan& one) { return p.name == one.question().name; });
    }

    const std::string lease_;
    const claim_id id_;
    const std::optional<std::int64_t> number_;
    std::vector<queue_scan> scans_;
    std::int64_t created_;  // as it was known when this began
    std::int64_t since_ = 0;
};

}  // namespace

bool claim_view::granted() const noexcept {
    return std::all_of(parts.begin(), parts.end(), [](const auto& p) { return p.has_turn(); });
}

std::vector<std::uint64_t> tokens_of(claims& known, known_claim& claim, std::int64_t revision) {
    if (!claim.tokens.empty()) return claim.tokens;
    std::vector<std::uint64_t> out;
    for (const auto& p : claim.parts) {
        out.push_back(p.kind == claim_kind::exclusive ? known.token_at(revision) : 0);
    }
    return out;
}

op parts_of(const std::shared_ptr<claims>& known, std::string_view lease, claim_id id, deadline by,
            completion<std::vector<part>> done) {
    return finding_parts::begin(known, by, std::move(done), lease, id);
}

op look_at(const std::shared_ptr<claims>& known, std::string_view lease, claim_id id, deadline by,
           completion<claim_view> done, std::int64_t created) {
    return looking::begin(known, by, std::move(done), lease, id, created);
}

}  // namespace trinco::detail::etcd
