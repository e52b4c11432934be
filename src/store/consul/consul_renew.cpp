// Renewing a lease, and with it the sessions of its permits. A permit is believed in for as long as
// its lease, so a renewal is good only if all are renewed that the lease still has.
//
// `lost` may be the word of a leader that was deposed, and does not know the sessions that were
// made since. So a leader that asks a majority is asked next:
//
//   it knows the session   The renewal has failed, as one whose answer did not come: nothing is
//                          believed for longer, and nothing is taken for gone. It is tried again as
//                          any other, and a leader that was deposed learns it in a moment; if not,
//                          the lease ends by its own deadline.
//   it knows none          Of the lease's: the lease has ended. Of a permit's: the permit is lost
//                          and told so, and the renewal is good for what is left.
//   it does not answer     The renewal has failed.
#include <algorithm>

#include "core/mutant.hpp"
#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

class renewing : public conversation<renewing, std::chrono::seconds> {
public:
    explicit renewing(std::string_view lease) : lease_(lease) {}

    void start() {
        ++open_;
        if (auto* on = known().find(lease_)) {
            on->renewal = known().on().now();
            for (const auto& [id, c] : on->claims) {
                if (!c.session.empty()) renew_permit(id, c.session);
            }
        }
        request_ = link().renew(lease_, by_, then(&renewing::renewed));
    }

private:
    void renew_permit(claim_id id, const std::string& session) {
        ++open_;
        permits_.push_back(link().renew(session, by_,
                                        [weak = weak_from_this(), id, session](
                                            std::error_code error, std::chrono::seconds granted) {
                                            const auto self = weak.lock();
                                            if (!self || self->over() ||
                                                self->known().link() == nullptr)
                                                return;
                                            if (error == errc::lost)
                                                return self->look_at(id, session);
                                            self->one_is_over(error, granted);
                                        }));
    }
    void look_at(claim_id id, const std::string& session) {
        permits_.push_back(
            link().facts(session, by_,
                         [weak = weak_from_this(), id, session](
                             std::error_code error, const std::optional<session_facts>& facts) {
                             const auto self = weak.lock();
                             if (!self || self->over() || self->known().link() == nullptr) return;
                             if (!error && facts) error = errc::unavailable;
                             if (TRINCO_MUTANT("consul_permit_unrenewed")) error.clear();
                             if (!error && !facts) self->is_gone(id, session);
                             self->one_is_over(error, std::chrono::seconds::max());
                         }));
    }
    void is_gone(claim_id id, const std::string& session) {
        auto* c = known().find(lease_, id);
        if (c == nullptr || c->session != session) return;
        if (c->phase == claim_phase::granted) return known().lose(lease_, id);
        // Whoever waits gets a new one when there is room; an attempt finds out by itself.
        if (c->phase != claim_phase::waiting || c->trying) return;
        c->session.clear();
        c->may_arrive = false;
    }

    void renewed(std::error_code error, std::chrono::seconds granted) {
        if (error == errc::lost) {
            request_ = link().facts(lease_, by_, then(&renewing::read));
        } else if (error) {
            finish(error, 0s);
        } else {
            one_is_over({}, granted);
        }
    }
    void read(std::error_code error, std::optional<session_facts> facts) {
        if (error) return finish(error, 0s);
        if (facts) return finish(errc::unavailable, 0s);
        known().forget(lease_);
        finish(errc::lost, 0s);
    }
    // What fails of one permit is told when the others are renewed.
    void one_is_over(std::error_code error, std::chrono::seconds granted) {
        if (error) trouble_ = error;
        granted_ = std::min(granted_, granted);
        if (--open_ == 0) finish(trouble_, trouble_ ? 0s : granted_);
    }

    const std::string lease_;
    std::chrono::seconds granted_ = std::chrono::seconds::max();
    std::error_code trouble_;
    std::size_t open_ = 0;
    std::vector<op> permits_;
};

}  // namespace

op renew_lease(const claims_ptr& known, std::string_view lease, deadline by,
               completion<std::chrono::seconds> done) {
    return renewing::begin(known, by, std::move(done), lease);
}

}  // namespace trinco::detail::consul
