// Entering: a claim gets its place in the account, and its first attempt is made at once. Whoever
// stands behind another claim of the same lease asks nothing of the server.
#include <algorithm>

#include "store/consul/consul_calls.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::size_t max_info = 4'096;
// What lies under a semaphore's name is read at once: its holders with 4 KiB each, within 4 MiB.
constexpr std::uint32_t most_permits = 500;

bool is_unique_name(const std::vector<part>& parts) {
    return std::adjacent_find(parts.begin(), parts.end(), [](const part& a, const part& b) {
               return a.name >= b.name;
           }) == parts.end();
}

class entering : public conversation<entering, place> {
public:
    explicit entering(const claim& what) : what_(what) {}

    ~entering() {
        if (listening_ != 0) known().unlisten(listening_);
    }

    void start() {
        auto* c = known().find(what_.lease, what_.id);
        if (c == nullptr) return add();
        switch (c->phase) {
            case claim_phase::granted:
                request_ =
                    confirm(known_ptr(), what_.lease, what_.id, by_, then(&entering::confirmed));
                return;
            case claim_phase::waiting: return answer({}, {});
            case claim_phase::leaving: return refuse(errc::busy);
            case claim_phase::unsure: return try_first();
            case claim_phase::asking: return listen();
        }
    }

private:
    void add() {
        auto& c = known().add(what_);
        auto behind = known().in_line_behind(what_.lease, what_.id);
        if (behind.empty()) return try_first();
        if (what_.only_if_free) {
            known().forget(what_.lease, what_.id, errc::conflict);
            return refuse(errc::conflict);
        }
        c.obstacle = std::move(behind);
        c.phase = claim_phase::waiting;
        answer({}, {});
    }
    void try_first() {
        listen();
        known().find(what_.lease, what_.id)->phase = claim_phase::asking;
        contend(known_ptr(), what_.lease, what_.id, by_);
    }
    void listen() {
        listening_ =
            known().listen(what_.lease, what_.id, [weak = weak_from_this()](std::error_code gone) {
                const auto self = weak.lock();
                if (self && !self->over()) self->changed(gone);
            });
        limit_ = known().on().at(by_, then(&entering::over_time));
    }
    void changed(std::error_code gone) {
        if (gone) return finish(gone, {});
        const auto* c = known().find(what_.lease, what_.id);
        if (c == nullptr) return finish(errc::lost, {});
        if (c->phase == claim_phase::asking) return;
        if (c->phase == claim_phase::unsure) return finish(c->trouble, {});
        finish({}, {});
    }
    void over_time() { finish(errc::unknown_outcome, {}); }

    void confirmed(std::error_code error, grant) {
        // What was there is not any more: entered anew it is another entry.
        const bool is_gone = error == errc::lost && known().find(what_.lease) != nullptr &&
                             known().find(what_.lease, what_.id) == nullptr;
        if (is_gone) return add();
        finish(error, {});
    }

    const claim what_;
    claims::listener_id listening_ = 0;
    op limit_;
};

}  // namespace

std::error_code check_claim(const claims_ptr& known, const claim& what) {
    if (what.parts.empty() || what.parts.size() > consul_locks::parts_max ||
        what.info.size() > max_info || what.id.n == 0 || !is_unique_name(what.parts)) {
        return errc::invalid;
    }
    // What others read as it is must not be taken for one of our notes.
    if (what.bare && note_of(what.info)) return errc::invalid;
    for (const auto& p : what.parts) {
        if (const auto bad = check_consul_name(p.name)) {
            known->say(errc::invalid, *bad);
            return errc::invalid;
        }
        const bool counts = p.kind == claim_kind::permit;
        if (counts != (p.n != 0)) return errc::invalid;
        if (p.n > most_permits) {
            known->say(errc::invalid, "a semaphore on Consul has at most " +
                                          std::to_string(most_permits) + " permits");
            return errc::invalid;
        }
    }
    const bool offered = std::all_of(what.parts.begin(), what.parts.end(),
                                     [](const part& p) { return p.kind == claim_kind::exclusive; });
    if (offered) return {};
    // A permit has a session of its own, and one transaction takes the names of one session.
    const bool alone = what.parts.size() == 1 && what.parts[0].kind == claim_kind::permit;
    if (!alone) return errc::not_supported;
    return what.bare ? std::error_code(errc::invalid) : std::error_code();
}

op enter_claim(const claims_ptr& known, const claim& what, deadline by, completion<place> done) {
    return entering::begin(known, by, std::move(done), what);
}

}  // namespace trinco::detail::consul
