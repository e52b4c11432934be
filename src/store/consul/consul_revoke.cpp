// Ending a lease: what it holds is given back first, since Consul keeps from everybody what a
// session held when it ended. When that takes too long the session is ended all the same.
#include <algorithm>

#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

constexpr int most_rounds = 3;  // of giving back

class revoking : public conversation<revoking, int> {
public:
    explicit revoking(std::string_view lease) : lease_(lease) {}

    void start() {
        const auto now = known().on().now();
        give_back_by_ = now + (by_ - now) / 2;
        std::vector<contender> permits;
        if (auto* on = known().find(lease_)) {
            collect(*on);
            permits = take_permits(*on);
        }
        known().forget(lease_);
        if (permits.empty()) return go_on();
        open_ = permits.size();
        for (const auto& one : permits) {
            permits_.push_back(
                give_back_permit(known_ptr(), one, give_back_by_, then(&revoking::given_back)));
        }
    }

private:
    // One that cannot be reached ends by its TTL: nobody renews it any more.
    void given_back(std::error_code, int) {
        if (--open_ == 0) go_on();
    }
    void go_on() { doubtful_.empty() ? erase() : read(); }

    static std::vector<contender> take_permits(known_lease& on) {
        std::vector<contender> out;
        for (auto& [id, c] : on.claims) {
            if (!c.session.empty()) {
                out.push_back({c.parts.front().name, std::exchange(c.session, {})});
            }
        }
        return out;
    }
    void collect(const known_lease& on) {
        const auto doubt = [this](const std::vector<part>& parts) {
            for (const auto& p : parts) doubtful_.push_back(known().key_of(p.name));
        };
        for (const auto& [id, c] : on.claims) {
            if (c.counts()) continue;
            held_.insert(held_.end(), c.held.begin(), c.held.end());
            if (c.held.empty() && (c.trying || c.may_arrive)) doubt(c.parts);
        }
        for (const auto& [id, late] : on.late) doubt(late.parts);
        std::sort(doubtful_.begin(), doubtful_.end());
        doubtful_.erase(std::unique(doubtful_.begin(), doubtful_.end()), doubtful_.end());
    }

    void read() {
        for (const auto& one : held_) doubtful_.push_back(one.key);
        held_.clear();
        request_ = read_keys(known_ptr(), std::exchange(doubtful_, {}), give_back_by_,
                             then(&revoking::found));
    }
    void found(std::error_code error, found_keys keys) {
        if (error) return destroy();
        for (const auto& kv : keys) {
            if (kv && kv->session == lease_)
                held_.push_back({kv->key, id_of(*kv), kv->modify_index});
        }
        erase();
    }

    void erase() {
        if (held_.empty() || ++rounds_ > most_rounds) return destroy();
        txn_request ask;
        const auto n = std::min(most_operations, held_.size());
        for (std::size_t i = 0; i < n; ++i) {
            operation away;
            away.verb = operation::verb_t::erase_cas;
            away.key = held_[i].key;
            away.index = held_[i].index;
            ask.operations.push_back(std::move(away));
        }
        asked_ = n;
        request_ = link().txn(ask, give_back_by_, then(&revoking::erased));
    }
    void erased(std::error_code error, txn_reply reply) {
        if (error) return destroy();
        if (!reply.applied) return read();
        rounds_ = 0;
        held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(asked_));
        erase();
    }

    void destroy() { request_ = link().destroy(lease_, by_, then(&revoking::ended)); }
    void ended(std::error_code error, int) { finish(error, 0); }

    const std::string lease_;
    deadline give_back_by_;
    std::vector<held_entry> held_;
    std::vector<std::string> doubtful_;
    std::size_t asked_ = 0;
    std::vector<op> permits_;
    std::size_t open_ = 0;
    int rounds_ = 0;
};

}  // namespace

op revoke_lease(const claims_ptr& known, std::string_view lease, deadline by,
                completion<int> done) {
    return revoking::begin(known, by, std::move(done), lease);
}

}  // namespace trinco::detail::consul
