// Entering the queues. All parts in one transaction, which compares that none of the entries is
// there yet; so it may be repeated, and finds what an earlier attempt left. The same transaction
// reads what is ahead: whoever has its turn at once needs no further read to be granted.
//
// Reading costs etcd more than comparing. Where nobody is likely to be in the queues, the
// transaction compares that they are empty, own entries among them, and reads nothing; when they
// are not, the one above follows (of only_if_free the one below).
//
// only_if_free compares over the whole range of each queue, too: first that it is empty; when it is
// not and the entries there are not in the way (shared ones, permits, strays), that nobody came
// since they were read.
#include <algorithm>

#include "core/mutant.hpp"
#include "core/names.hpp"
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr std::size_t max_info = 4'096;
constexpr int most_attempts = 8;  // of only_if_free, when others come and go meanwhile

bool is_unique_name(const std::vector<part>& parts) {
    return std::adjacent_find(parts.begin(), parts.end(), [](const part& a, const part& b) {
               return a.name >= b.name;
           }) == parts.end();
}

class entering : public conversation<entering, place> {
public:
    explicit entering(claim what) : what_(std::move(what)), lease_(*lease_number(what_.lease)) {}

    void start() {
        const auto [at, is_new] = known().lease(what_.lease).claims.try_emplace(what_.id);
        hopes_ = is_new && may_hope();
        auto& c = at->second;
        if (c.created == 0) c.parts = what_.parts;
        c.bare = what_.bare;
        send();
    }

private:
    void ask_anew() {
        scans_.clear();
        for (const auto& p : what_.parts) {
            scans_.emplace_back(turn_question{p.name, {p.kind, p.n}, 0});
        }
    }

    // Of those who share a queue somebody is there as a rule.
    [[nodiscard]] bool may_hope() const {
        return std::all_of(what_.parts.begin(), what_.parts.end(), [this](const part& p) {
            return p.kind == claim_kind::exclusive && known().hopes.has(p.name);
        });
    }

    void send() {
        if (hopes_) return send_hoping();
        ask_anew();
        send_reading();
    }
    void send_hoping() {
        txn_request ask;
        for (const auto& p : what_.parts) {
            if (!TRINCO_MUTANT("etcd_hope_uncompared")) ask.compare.push_back(free_since(p.name));
            ask.success.emplace_back(put_request{entry_key(p.name, lease_, what_.id),
                                                 value_for({p.kind, p.n}, true), lease_});
        }
        if (what_.only_if_free) {
            ask_anew();
            ask.failure = read_all();
        }
        request_ = link().txn(ask, by_, then(&entering::answered));
    }
    void send_reading() {
        txn_request ask;
        for (const auto& one : scans_) {
            const auto& q = one.question();
            const auto key = entry_key(q.name, lease_, what_.id);
            if (!TRINCO_MUTANT("etcd_enter_uncompared")) {
                ask.compare.push_back({{key, {}}});
            }
            if (what_.only_if_free) ask.compare.push_back(free_since(q.name));
            ask.success.emplace_back(
                put_request{key, value_for(q.asks, what_.only_if_free), lease_});
        }
        for (const auto& one : scans_) ask.success.emplace_back(one.next(scans_.size()));
        ask.failure = read_all();
        request_ = link().txn(ask, by_, then(&entering::answered));
    }
    // The own entries, and the first page of each queue.
    [[nodiscard]] std::vector<operation> read_all() const {
        std::vector<operation> out;
        for (const auto& one : scans_) {
            out.emplace_back(range_request{{entry_key(one.question().name, lease_, what_.id), {}}});
        }
        for (const auto& one : scans_) out.emplace_back(one.next(scans_.size()));
        return out;
    }

    // Granted with the entering, if that succeeds at all, or perhaps only later.
    [[nodiscard]] std::string value_for(seat asks, bool at_once) const {
        owner_note out;
        out.asks = asks;
        out.since = known().wall_ms();
        if (at_once) out.held = out.since;
        out.info = what_.info.empty() ? known().label(what_.lease) : what_.info;
        return what_.bare ? out.info : text_of(out);
    }

    // That nobody entered since the last reading; before the first, that nobody is there.
    [[nodiscard]] comparison free_since(const std::string& name) const {
        comparison c{queue_of(name)};
        c.target = comparison::target_t::create_revision;
        if (read_at_ != 0) {
            c.is = comparison::is_t::less;
            c.number = read_at_ + 1;
        }
        return c;
    }

    void answered(std::error_code error, txn_reply reply) {
        if (error && reply.settled) return look_back();
        if (error) return failed(error);
        if (reply.succeeded && hopes_) return entered(reply.revision, {0}, true);
        if (reply.succeeded) {
            take(reply, reply.revision);
            if (limit_differs()) return step_back();
            remember_queues(reply, 1);
            return entered(reply.revision, ahead(reply), has_its_turn());
        }
        if (std::exchange(hopes_, false)) {
            if (!what_.only_if_free) return send();
            remember_queues(reply, 0);
        }
        if (const auto before = entered_before(reply)) return again(reply, *before);
        take(reply, 0);
        read_at_ = reply.revision;
        not_free();
    }

    // The first page of each queue, behind as many replies about the own entries.
    void take(const txn_reply& reply, std::int64_t mine) {
        for (std::size_t i = 0; i < scans_.size(); ++i) {
            scans_[i].is_mine(mine);
            scans_[i].take(reply.replies.at(scans_.size() + i));
        }
    }
    // As the reading showed them: nothing but so many entries of our own, or more.
    void remember_queues(const txn_reply& reply, std::int64_t own) {
        for (std::size_t i = 0; i < scans_.size(); ++i) {
            const auto& name = what_.parts[i].name;
            if (reply.replies.at(scans_.size() + i).count == own) {
                known().hopes.found_empty(name);
            } else {
                known().hopes.found_somebody(name);
            }
        }
    }
    [[nodiscard]] bool limit_differs() const {
        return std::any_of(scans_.begin(), scans_.end(),
                           [](const auto& one) { return one.result().limit_differs; });
    }

    void entered(std::int64_t revision, std::optional<std::uint32_t> ahead, bool at_once) {
        place at{ahead};
        if (auto* mine = known().find(what_.lease, what_.id)) {
            known_claim c;
            c.parts = std::move(mine->parts);
            c.bare = what_.bare;
            c.created = revision;
            c.unmarked = revision;
            c.at_once = at_once;
            if (at_once) {
                c.tokens = tokens_of(known(), c, revision);
                c.held = known().wall_ms();
                at.granted = grant{c.tokens};
            }
            *mine = std::move(c);
        }
        finish({}, std::move(at));
    }
    [[nodiscard]] bool has_its_turn() const {
        return TRINCO_MUTANT("etcd_granted_behind_others") ||
               std::all_of(scans_.begin(), scans_.end(),
                           [](const auto& one) { return one.done() && one.result().has_turn(); });
    }

    // How many are before the first part. Behind what was read, strays count too; and of those who
    // came later, when there are so many that not all of them were read, nothing is known.
    [[nodiscard]] std::optional<std::uint32_t> ahead(const txn_reply& reply) const {
        const auto& first = scans_.front();
        if (const auto told = first.result().ahead) return told;
        const auto later = first.behind();
        if (!later) return std::nullopt;
        const auto all = reply.replies.at(scans_.size()).count;
        return static_cast<std::uint32_t>(std::max<std::int64_t>(all - 1 - *later, 0));
    }

    // The create_revision of what an earlier attempt has left; 0 when a part of it was deleted.
    [[nodiscard]] std::optional<std::int64_t> entered_before(const txn_reply& reply) const {
        std::size_t there = 0;
        std::int64_t created = 0;
        for (std::size_t i = 0; i < scans_.size(); ++i) {
            const auto& kvs = reply.replies.at(i).kvs;
            if (kvs.empty() || kvs.front().lease != lease_) continue;
            created = kvs.front().create_revision;
            ++there;
        }
        if (there == 0) return std::nullopt;
        return there == scans_.size() ? created : 0;
    }
    void again(const txn_reply& reply, std::int64_t created) {
        if (created == 0) return finish(errc::lost, {});
        auto* c = known().find(what_.lease, what_.id);
        if (c != nullptr && c->created != created) {
            *c = {};
            c->parts = what_.parts;
            c->bare = what_.bare;
            c->created = created;
        }
        take(reply, created);
        if (limit_differs()) return step_back();
        finish({}, {ahead(reply)});
    }

    // The server was full: what was asked for is refused, or carried out all the same. Nothing of
    // it lands later, so that what is there now is the answer.
    void look_back() {
        ask_anew();
        request_ = link().txn({{}, read_all(), {}}, by_, then(&entering::looked_back));
    }
    void looked_back(std::error_code error, txn_reply reply) {
        if (error) return finish(errc::unknown_outcome, {});
        if (const auto before = entered_before(reply)) return again(reply, *before);
        finish(errc::busy, {});
    }

    // Something is there. Whether it is in the way may take more pages; whoever comes after the
    // first of them is found by the compare of the next attempt.
    void not_free() {
        if (limit_differs()) return finish(errc::limit_mismatch, {});
        const bool taken = std::any_of(scans_.begin(), scans_.end(), [](const auto& one) {
            return one.done() && !one.result().has_turn();
        });
        if (!what_.only_if_free || taken) return finish(errc::conflict, {});
        txn_request ask;
        const auto open = unfinished();
        for (const auto* one : open) ask.success.emplace_back(one->next(open.size()));
        if (!open.empty()) {
            request_ = link().txn(ask, by_, then(&entering::paged));
        } else if (++attempts_ == most_attempts) {
            finish(errc::conflict, {});
        } else {
            send();
        }
    }
    void paged(std::error_code error, txn_reply reply) {
        if (error) return failed(error);
        auto page = reply.replies.begin();
        for (auto* one : unfinished()) one->take(*page++);
        not_free();
    }
    [[nodiscard]] std::vector<queue_scan*> unfinished() {
        std::vector<queue_scan*> out;
        for (auto& one : scans_) {
            if (!one.done()) out.push_back(&one);
        }
        return out;
    }

    // It stands behind permits of another number: away with it again.
    void step_back() {
        if (auto* c = known().find(what_.lease, what_.id)) {
            c->created = scans_.front().question().mine;
        }
        request_ = leave_claim(known_ptr(), what_.lease, what_.id, by_, then(&entering::left));
    }
    void left(std::error_code error, int) {
        finish(
            error ? make_error_code(errc::unknown_outcome) : make_error_code(errc::limit_mismatch),
            {});
    }

    void failed(std::error_code error) {
        if (error == errc::lost) known().forget(what_.lease);
        finish(error, {});
    }

    const claim what_;
    const std::int64_t lease_;
    std::vector<queue_scan> scans_;
    bool hopes_ = false;        // that nobody is in its queues, so that nothing needs to be read
    std::int64_t read_at_ = 0;  // the first page of what is in the way
    int attempts_ = 0;
};

}  // namespace

std::error_code check_claim(const claim& what) {
    if (what.parts.empty() || what.parts.size() > etcd_locks::parts_max ||
        what.info.size() > max_info || what.id.n == 0 || !is_unique_name(what.parts)) {
        return errc::invalid;
    }
    // What others read as it is must not be taken for one of our notes.
    if (what.bare && note_of(what.info)) return errc::invalid;
    for (const auto& p : what.parts) {
        const bool counts = p.kind == claim_kind::permit;
        const bool sound = counts ? p.n >= 1 && p.n <= max_permits : p.n == 0;
        if (!sound || check_lock_name(p.name)) return errc::invalid;
    }
    return {};
}

op enter_claim(const claims_ptr& known, claim what, deadline by, completion<place> done) {
    return entering::begin(known, by, std::move(done), std::move(what));
}

}  // namespace trinco::detail::etcd
