// Permits of a semaphore, in the format of Go's api.Semaphore. One attempt reads what lies under
// the name, and if fewer hold than there are permits it takes the contender's key and writes its
// session into the list of holders, in one transaction, if that list is as it was read.
//
// The session is this permit's own, made when there is first room for it. Nothing else hangs on
// it, so a request that comes late takes what this claim wanted or, once the session has ended,
// nothing: giving back ends it.
#include <algorithm>

#include "store/consul/consul_calls.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr int most_rounds = 8;  // when others come and go meanwhile

class attempting_permit : public conversation<attempting_permit, attempt_result> {
public:
    attempting_permit(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    void start() {
        const auto* c = mine();
        if (c == nullptr) return refuse(errc::lost);
        serial_ = c->serial;
        out_.name = c->parts.front().name;
        n_ = c->parts.front().n;
        key_ = semaphore_key(known().settings().prefix, out_.name);
        read();
    }

private:
    [[nodiscard]] known_claim* mine() {
        return serial_ == 0 ? known().find(lease_, id_) : known().find(lease_, id_, serial_);
    }
    [[nodiscard]] std::string own_key(const known_claim& c) const {
        return contender_key(known().settings().prefix, out_.name, c.session);
    }

    void read() {
        if (++rounds_ > most_rounds) return end(attempt_result::what_t::in_the_way);
        out_.sent = known().on().now();
        request_ = link().read({contenders_under(known().settings().prefix, out_.name), true, true},
                               by_, then(&attempting_permit::found));
    }
    void found(std::error_code error, read_reply reply) {
        if (error) return finish(error, {});
        auto* c = mine();
        if (c == nullptr) return finish(errc::lost, {});
        seen_ = state_of(reply.rows, key_);
        if (const auto why = why_not(); !why.empty()) return other_kind(why);
        const auto own = std::find_if(reply.rows.begin(), reply.rows.end(), [&](auto& kv) {
            return !c->session.empty() && kv.session == c->session && kv.key == own_key(*c);
        });
        if (own != reply.rows.end() && seen_.alive.contains(c->session)) return taken(*own);
        // Its contender was deleted. Taken once more the list would be what it is already and keep
        // its index, so that who read it without a contender could still drop its place.
        if (seen_.listed.contains(c->session)) {
            end_session(known(), std::exchange(c->session, {}));
            c->may_arrive = false;
        }
        if (!seen_.has_news_for(n_)) return end(attempt_result::what_t::in_the_way);
        c->session.empty() ? read_lease() : send();
    }

    [[nodiscard]] std::string why_not() {
        using what_t = semaphore_state::what_t;
        out_.refusal = errc::limit_mismatch;
        if (seen_.what == what_t::other_kind && seen_.flags == lock_flags) {
            return "' is not that of a semaphore but of a lock: choose another name";
        }
        if (seen_.what == what_t::counts && seen_.limit != std::int64_t{n_}) {
            return "' is that of a semaphore with " + std::to_string(seen_.limit) +
                   " permits, not " + std::to_string(n_);
        }
        out_.refusal = errc::invalid;
        if (seen_.what == what_t::other_kind) {
            return "' is not that of a semaphore but something else, with flags " +
                   std::to_string(seen_.flags) + ": choose another name";
        }
        if (seen_.what == what_t::unreadable) {
            return "' does not say who has the permits as Go's api.Semaphore does: choose another "
                   "name, or delete it when nobody uses it";
        }
        return {};
    }
    void other_kind(const std::string& why) {
        known().say(out_.refusal, "the key '" + key_ + why);
        end(attempt_result::what_t::other_kind);
    }

    // The permit's session would outlive a lease that has ended.
    void read_lease() {
        request_ = link().facts(lease_, by_, then(&attempting_permit::lease_read));
    }
    void lease_read(std::error_code error, std::optional<session_facts> facts) {
        if (error) return finish(error, {});
        const auto* on = known().find(lease_);
        if (!facts || on == nullptr) return finish(errc::lost, {});
        session_request ask;
        ask.name = on->label + " (a permit; lease " + lease_ + ")";
        ask.ttl = on->granted;
        ask.erases = true;  // without a lock-delay: nobody else can want what it holds
        made_ = known().on().now();
        limit_ = known().on().at(by_, then(&attempting_permit::over_time));
        create(ask);
    }
    // Also when nobody waits for it any more it is asked for to its end: the session is there then,
    // and is ended. One that nobody hears of ends by its TTL, since nobody renews it.
    void create(const session_request& ask) {
        known().in_background([&](unique_function<void()> over) {
            return link().create(
                ask, std::min(by_, deadline::max() - patience) + patience,
                [weak = weak_from_this(), to = std::weak_ptr(known_ptr()), over = std::move(over)](
                    std::error_code error, const std::string& session) mutable {
                    const auto all = to.lock();
                    const auto self = weak.lock();
                    over();
                    if (!all || all->link() == nullptr) return;
                    if (self && !self->over()) return self->created(error, session);
                    if (!error) end_session(*all, session);
                });
        });
    }
    void over_time() { finish(errc::unavailable, {}); }
    void created(std::error_code error, std::string session) {
        limit_.cancel();
        if (error) return finish(error == errc::unknown_outcome ? errc::unavailable : error, {});
        auto* c = mine();
        if (c == nullptr) {
            end_session(known(), session);
            return finish(errc::lost, {});
        }
        c->session = std::move(session);
        is_as_fresh_as_the_lease();
    }
    // A renewal that was begun meanwhile left this session out.
    void is_as_fresh_as_the_lease() {
        const auto* on = known().find(lease_);
        if (on == nullptr) return finish(errc::lost, {});
        if (!on->renewal || *on->renewal < made_) return send();
        made_ = known().on().now();
        request_ = link().renew(mine()->session, by_, then(&attempting_permit::renewed));
    }
    void renewed(std::error_code error, std::chrono::seconds) {
        auto* c = mine();
        if (c == nullptr) return finish(errc::lost, {});
        if (!error) return is_as_fresh_as_the_lease();
        end_session(known(), std::exchange(c->session, {}));
        finish(errc::unavailable, {});
    }
    static void end_session(claims& known, const std::string& session) {
        known.in_background([&](unique_function<void()> over) {
            return known.link()->destroy(
                session, known.on().now() + patience,
                [over = std::move(over)](std::error_code, int) mutable { over(); });
        });
    }

    void send() {
        auto* c = mine();
        if (c == nullptr) return finish(errc::lost, {});
        out_.sent = known().on().now();
        c->held_at = known().wall_ms();
        owner_note note;
        note.id = id_;
        note.since = c->since;
        note.held = c->held_at;
        note.lease = lease_;
        note.info = c->info;
        operation take;
        take.verb = operation::verb_t::lock;
        take.key = own_key(*c);
        take.value = text_of(note);
        take.flags = semaphore_flags;
        take.session = c->session;
        auto holders = seen_.alive;
        holders.insert(c->session);
        txn_request ask;
        ask.operations = {std::move(take), change_of(key_, seen_.index, std::int64_t{n_}, holders)};
        request_ = link().txn(ask, by_, then(&attempting_permit::answered));
    }
    void answered(std::error_code error, txn_reply reply) {
        auto* c = mine();
        if (c == nullptr) return finish(errc::lost, {});
        if (error == errc::unknown_outcome) c->may_arrive = true;
        if (error) return finish(error, {});
        if (!reply.applied) return refused(*c, reply);
        const auto row = std::find_if(reply.rows.begin(), reply.rows.end(),
                                      [&](auto& kv) { return kv.key == own_key(*c); });
        if (row != reply.rows.end()) return taken(*row);
        c->may_arrive = true;  // it was done, and is not told
        finish(errc::unknown_outcome, {});
    }
    void refused(known_claim& c, const txn_reply& reply) {
        for (const auto& one : reply.refusals) {
            if (const auto why = known().final_word(one)) return finish(why, {});
            // Nothing of an ended one can land any more.
            if (one.why == refusal_t::no_session) c.session.clear();
        }
        if (c.session.empty()) c.may_arrive = false;
        read();
    }

    void taken(const key_value& kv) {
        out_.held.push_back({kv.key, id_of(kv), kv.modify_index});
        out_.tokens.push_back(0);
        end(attempt_result::what_t::taken);
    }
    void end(attempt_result::what_t what) {
        out_.what = what;
        finish({}, std::move(out_));
    }

    const std::string lease_;
    const claim_id id_;
    std::uint64_t serial_ = 0;
    std::uint32_t n_ = 0;
    std::string key_;
    semaphore_state seen_;
    boot_clock::time_point made_;  // when the session was asked for, or its renewal
    int rounds_ = 0;
    attempt_result out_;
    op limit_;
};

// What is left in the list of holders of somebody whose session has ended is dropped by the next
// who takes a permit; so that much may fail.
class giving_back : public conversation<giving_back, int> {
public:
    explicit giving_back(contender who) : who_(std::move(who)) {}

    void start() {
        const auto& prefix = known().settings().prefix;
        const auto now = known().on().now();
        unlist_by_ = now + (by_ - now) / 2;
        key_ = semaphore_key(prefix, who_.name);
        own_key_ = contender_key(prefix, who_.name, who_.session);
        read();
    }

private:
    void read() {
        if (++rounds_ > most_rounds) return destroy();
        request_ = link().read({contenders_under(known().settings().prefix, who_.name), true, true},
                               unlist_by_, then(&giving_back::found));
    }
    void found(std::error_code error, read_reply reply) {
        if (error) return destroy();
        auto seen = state_of(reply.rows, key_);
        if (!seen.listed.contains(who_.session)) return destroy();
        seen.alive.erase(who_.session);
        operation away;
        away.verb = operation::verb_t::erase;
        away.key = own_key_;
        txn_request ask;
        ask.operations = {change_of(key_, seen.index, seen.limit, seen.alive), std::move(away)};
        request_ = link().txn(ask, unlist_by_, then(&giving_back::unlisted));
    }
    void unlisted(std::error_code error, txn_reply reply) {
        const bool changed = !error && !reply.applied &&
                             std::all_of(reply.refusals.begin(), reply.refusals.end(),
                                         [](auto& one) { return one.why == refusal_t::index; });
        changed ? read() : destroy();
    }
    void destroy() { request_ = link().destroy(who_.session, by_, then(&giving_back::ended)); }
    void ended(std::error_code error, int) { finish(error, 0); }

    const contender who_;
    deadline unlist_by_{};
    std::string key_;
    std::string own_key_;
    int rounds_ = 0;
};

}  // namespace

op attempt_permit(const claims_ptr& known, std::string_view lease, claim_id id, deadline by,
                  completion<attempt_result> done) {
    return attempting_permit::begin(known, by, std::move(done), lease, id);
}

op give_back_permit(const claims_ptr& known, const contender& who, deadline by,
                    completion<int> done) {
    return giving_back::begin(known, by, std::move(done), who);
}

}  // namespace trinco::detail::consul
