// Leaving: the entries of exactly this claim are deleted, each only as long as it is the one that
// was entered, so that a late repetition never takes away a later entry of the same key.
#include <algorithm>

#include "core/mutant.hpp"
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"

namespace trinco::detail::etcd {
namespace {

constexpr int most_attempts = 4;  // when entries of it are deleted meanwhile

class leaving : public conversation<leaving, int> {
public:
    leaving(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    void start() {
        if (const auto* c = known().find(lease_, id_)) return leave(c->parts);
        request_ = parts_of(known_ptr(), lease_, id_, by_, then(&leaving::found));
    }

private:
    struct own {
        std::string key;
        std::int64_t created = 0;
    };

    void found(std::error_code error, std::vector<part> parts) {
        if (error == errc::lost) return gone();
        if (error) return finish(error, 0);
        leave(parts);
    }
    void leave(const std::vector<part>& parts) {
        const auto number = lease_number(lease_);
        if (!number) return finish({}, 0);
        const auto* c = known().find(lease_, id_);
        created_ = c == nullptr ? 0 : c->created;
        for (const auto& p : parts) mine_.push_back({entry_key(p.name, *number, id_), created_});
        if (created_ != 0) return erase();
        txn_request ask;
        for (const auto& one : mine_) ask.success.emplace_back(range_request{{one.key, {}}});
        request_ = link().txn(ask, by_, then(&leaving::read));
    }
    void read(std::error_code error, txn_reply reply) {
        if (error) return finish(error, 0);
        keep_what_is_there(reply);
    }

    void erase() {
        txn_request ask;
        for (const auto& one : mine_) {
            comparison same{{one.key, {}}};
            same.number = one.created;
            if (!TRINCO_MUTANT("etcd_release_uncompared")) ask.compare.push_back(std::move(same));
            ask.success.emplace_back(erase_request{{one.key, {}}});
            ask.failure.emplace_back(range_request{{one.key, {}}});
        }
        request_ = link().txn(ask, by_, then(&leaving::erased));
    }
    void erased(std::error_code error, txn_reply reply) {
        if (error) return finish(error, 0);
        if (reply.succeeded) return gone();
        if (++attempts_ == most_attempts) return finish(errc::unknown_outcome, 0);
        keep_what_is_there(reply);
    }

    // Goes on with those entries that are there and are this claim's.
    void keep_what_is_there(const txn_reply& reply) {
        std::vector<own> rest;
        for (std::size_t i = 0; i < mine_.size(); ++i) {
            const auto& kvs = reply.replies.at(i).kvs;
            if (kvs.empty() || kvs.front().lease != *lease_number(lease_)) continue;
            const auto created = kvs.front().create_revision;
            if (created_ == 0 || created == created_) rest.push_back({mine_[i].key, created});
        }
        mine_ = std::move(rest);
        if (mine_.empty()) return gone();
        erase();
    }

    void gone() {
        known().forget(lease_, id_);
        finish({}, 0);
    }

    const std::string lease_;
    const claim_id id_;
    std::int64_t created_ = 0;
    int attempts_ = 0;
    std::vector<own> mine_;
};

}  // namespace

op leave_claim(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
               completion<int> done) {
    return leaving::begin(known, by, std::move(done), lease, id);
}

}  // namespace trinco::detail::etcd
