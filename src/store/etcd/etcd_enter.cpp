// Entering the queues. All parts in one transaction, which compares that none of the entries is
// there yet; so it may be repeated, and finds what an earlier attempt left. The same transaction
// reads what is ahead: whoever has its turn at once needs no further read to be granted.
//
// only_if_free compares over the whole range of each queue instead: first that it is empty; when it
// is not and the entries there are not in the way (shared ones, permits, strays), that nobody came
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
    explicit entering(const claim& what) : what_(what), lease_(*lease_number(what.lease)) {}

    void start() {
        sent_ = known().on().now();
        auto& c = known().lease(what_.lease).claims[what_.id];
        if (c.created == 0) c.parts = what_.parts;
        c.bare = what_.bare;
        for (const auto& p : what_.parts) {
            questions_.push_back({p.name, {p.kind, p.n}, 0, depth});
        }
        send();
    }

private:
    void send() {
        txn_request ask;
        for (const auto& q : questions_) {
            const auto key = entry_key(q.name, lease_, what_.id);
            if (!TRINCO_MUTANT("etcd_enter_uncompared")) {
                ask.compare.push_back({{key, {}}});
            }
            if (what_.only_if_free) ask.compare.push_back(free_since(q.name));
            ask.success.emplace_back(put_request{key, value_for(q.asks), lease_});
            ask.failure.emplace_back(range_request{{key, {}}});
        }
        for (const auto& q : questions_) {
            for (const auto& one : reads_for(q)) {
                ask.success.emplace_back(one);
                ask.failure.emplace_back(one);
            }
        }
        request_ = link().txn(ask, by_, then(&entering::answered));
    }

    [[nodiscard]] std::string value_for(seat asks) const {
        owner_note out;
        out.asks = asks;
        out.since = known().wall_ms();
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
        if (error) return failed(error);
        const auto k = questions_.size();
        if (!reply.succeeded && entered_before(reply)) return;
        for (auto& q : questions_) q.mine = reply.succeeded ? reply.revision : 0;
        std::vector<judgement> parts;
        std::span<const operation_reply> rest(reply.replies);
        rest = rest.subspan(k);
        for (const auto& q : questions_) {
            const auto reads = reads_for(q).size();
            parts.push_back(judge(q, rest.subspan(0, reads)));
            rest = rest.subspan(reads);
        }
        if (!reply.succeeded) return not_free(reply, parts);
        const bool differs =
            std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p.limit_differs; });
        if (differs) return step_back();
        entered(reply, parts);
    }

    void entered(const txn_reply& reply, const std::vector<judgement>& parts) {
        known_claim c;
        c.parts = what_.parts;
        c.bare = what_.bare;
        c.created = reply.revision;
        c.unmarked = reply.revision;
        c.at_once =
            std::all_of(parts.begin(), parts.end(), [](const auto& p) { return p.has_turn(); });
        if (c.at_once) {
            c.tokens = tokens_of(known(), c, reply.revision);
            c.held = known().wall_ms();
            c.proven = sent_;
        }
        known().lease(what_.lease).claims[what_.id] = std::move(c);
        finish({}, {ahead(reply, parts.front())});
    }

    // How many are before the first part. Behind what was read, strays count too.
    [[nodiscard]] std::optional<std::uint32_t> ahead(const txn_reply& reply,
                                                     const judgement& first) const {
        if (first.ahead) return first.ahead;
        const auto all = reply.replies.at(questions_.size()).count;
        return static_cast<std::uint32_t>(std::max<std::int64_t>(all - 1, 0));
    }

    // An earlier attempt was carried out.
    bool entered_before(const txn_reply& reply) {
        std::size_t there = 0;
        std::int64_t created = 0;
        for (std::size_t i = 0; i < questions_.size(); ++i) {
            const auto& kvs = reply.replies.at(i).kvs;
            if (kvs.empty() || kvs.front().lease != lease_) continue;
            created = kvs.front().create_revision;
            ++there;
        }
        if (there == 0) return false;
        if (there < questions_.size()) {  // somebody deleted a part of it
            finish(errc::lost, {});
            return true;
        }
        auto& c = known().lease(what_.lease).claims[what_.id];
        if (c.created != created) {
            c = {};
            c.parts = what_.parts;
            c.bare = what_.bare;
            c.created = created;
        }
        std::vector<judgement> parts;
        auto rest = std::span<const operation_reply>(reply.replies).subspan(questions_.size());
        for (auto& q : questions_) {
            q.mine = created;
            const auto reads = reads_for(q).size();
            parts.push_back(judge(q, rest.subspan(0, reads)));
            rest = rest.subspan(reads);
        }
        const bool differs =
            std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p.limit_differs; });
        if (differs) {
            step_back();
        } else {
            finish({}, {ahead(reply, parts.front())});
        }
        return true;
    }

    void not_free(const txn_reply& reply, const std::vector<judgement>& parts) {
        const bool differs =
            std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p.limit_differs; });
        if (differs) return refused(errc::limit_mismatch);
        const bool deeper = std::any_of(parts.begin(), parts.end(), [](const auto& p) {
            return p.what == judgement::what_t::read_deeper;
        });
        const bool taken = std::any_of(parts.begin(), parts.end(), [](const auto& p) {
            return !p.has_turn() && p.what != judgement::what_t::read_deeper;
        });
        if (!what_.only_if_free || taken || ++attempts_ == most_attempts) {
            return refused(errc::conflict);
        }
        if (deeper) {
            for (auto& q : questions_) q.depth = attempts_ > 2 ? 0 : q.depth * 16;
        } else {
            read_at_ = reply.revision;
        }
        send();
    }

    // It stands behind permits of another number: away with it again.
    void step_back() {
        known().lease(what_.lease).claims[what_.id].created = questions_.front().mine;
        request_ = leave_claim(known_ptr(), what_.lease, what_.id, by_, then(&entering::left));
    }
    void left(std::error_code error, int) {
        finish(
            error ? make_error_code(errc::unknown_outcome) : make_error_code(errc::limit_mismatch),
            {});
    }

    void failed(std::error_code error) {
        if (error == errc::lost) {
            known().forget(what_.lease);
        } else if (kind_of(error) == error_kind::not_applied) {
            return refused(error);
        }
        finish(error, {});
    }
    void refused(std::error_code error) {
        known().forget(what_.lease, what_.id);
        finish(error, {});
    }

    static constexpr std::int64_t depth = 16;
    const claim what_;
    const std::int64_t lease_;
    boot_clock::time_point sent_;
    std::vector<turn_question> questions_;
    std::int64_t read_at_ = 0;
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

op enter_claim(const claims_ptr& known, const claim& what, deadline by, completion<place> done) {
    return entering::begin(known, by, std::move(done), what);
}

}  // namespace trinco::detail::etcd
