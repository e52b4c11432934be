// Waiting for the turn. Look (own entries and what is ahead, in one transaction), then watch the
// one thing that is in the way, then look again: a watch says when to look and nothing else, so
// that an event that never comes only delays, until the look that is due anyway.
#include <algorithm>

#include "core/mutant.hpp"
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"
#include "store/etcd/etcd_pauses.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration patience = 5s;  // with one look

class waiting_for_turn : public conversation<waiting_for_turn, grant> {
public:
    waiting_for_turn(std::string_view lease, claim_id id, unique_function<void(place)> moved)
        : lease_(lease), id_(id), moved_(std::move(moved)) {}

    ~waiting_for_turn() {
        if (listening_ != 0) known().unlisten(listening_);
    }

    void start() {
        listening_ = known().listen(lease_, id_, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->end(errc::lost);
        });
        if (const auto* c = known().find(lease_, id_)) created_ = c->created;
        look();
    }

private:
    op at(boot_clock::time_point when, void (waiting_for_turn::*step)()) {
        return known().on().at(when, [weak = weak_from_this(), step] {
            const auto self = weak.lock();
            if (self && self->known().link() != nullptr) (self.get()->*step)();
        });
    }

    void look() {
        timer_ = op();
        looks_ = true;
        again_ = false;
        request_ = look_at(known_ptr(), lease_, id_, known().on().now() + patience,
                           then(&waiting_for_turn::seen), created_);
    }
    void look_as_due() {
        pauses_.have_watched();
        look();
    }

    void seen(std::error_code error, claim_view v) {
        looks_ = false;
        if (error == errc::lost) return end(errc::lost);
        if (error) {
            const auto wait = pauses_.after_failure(known().on());
            timer_ = at(known().on().now() + wait, &waiting_for_turn::look);
            return;
        }
        pauses_.have_read();
        if (created_ == 0) created_ = v.created();
        if (v.granted()) return granted(v);
        if (again_) return look();
        tell_place(v.parts.front());
        if (over()) return;  // dropped in that call
        for (std::size_t i = 0; i < v.parts.size(); ++i) {
            if (!v.parts[i].has_turn()) return wait(v, i);
        }
    }

    void tell_place(const judgement& first) {
        if (!moved_ || !first.ahead || told_ == first.ahead) return;
        told_ = first.ahead;
        moved_({first.ahead});
    }

    void wait(const claim_view& v, std::size_t part) {
        const auto& blocked = v.parts[part];
        if (!TRINCO_MUTANT("etcd_watch_trusted")) timer_ = due_look(v, blocked);
        const bool any = blocked.what == judgement::what_t::wait_any;
        watch_request what;
        if (any) {
            const auto* c = known().find(lease_, id_);
            if (c == nullptr) return end(errc::lost);
            what.keys = queue_of(c->parts.at(part).name);
        } else {
            what.keys = {blocked.blocker, {}};
        }
        what.puts = blocked.what == judgement::what_t::wait_moved;
        what.from_revision = v.since + 1;
        if (watching_ && what.keys == watched_.keys && what.puts == watched_.puts) return;
        watched_ = what;
        watching_ = true;
        watch_ = link().watch(
            what,
            [weak = weak_from_this()](const watch_news&) {
                if (const auto self = weak.lock()) self->nudged();
            },
            [weak = weak_from_this()](std::error_code error) {
                if (const auto self = weak.lock()) self->watch_over(error);
            });
    }

    // Together with others, where no turn can come while the one in the way is there.
    op due_look(const claim_view& v, const judgement& blocked) {
        const auto every = known().look_every(lease_);
        if (moved_ || blocked.what != judgement::what_t::wait_erased) {
            return at(known().on().now() + every, &waiting_for_turn::look_as_due);
        }
        std::vector<comparison> still;
        for (const auto& own : v.own) {
            still.push_back({{own.key, {}}});
            still.back().number = own.create_revision;
        }
        still.push_back({{blocked.blocker, {}}});
        still.back().number = blocked.blocker_since;
        return known().glances.keep(std::move(still), every, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (self && self->known().link() != nullptr) self->look_as_due();
        });
    }

    void nudged() {
        pauses_.have_watched();
        if (looks_) {
            again_ = true;
        } else {
            look();
        }
    }
    // Compacted: read again and watch from there, as a look that is under way does. Refused: the
    // looks that are due must do.
    void watch_over(std::error_code error) {
        watching_ = false;
        if (looks_ || error != errc::conflict) return;
        timer_ = at(known().on().now() + pauses_.after_compaction(known().on()),
                    &waiting_for_turn::look);
    }

    void granted(const claim_view& v) {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr || c->created != created_) return end(errc::lost);
        grant_.tokens = c->tokens;
        tell_followers(*c, v);
        end({});
    }

    // Those behind a permit that waited watch its entry: they move up when it is granted.
    void tell_followers(const known_claim& c, const claim_view& v) {
        const bool counts = std::any_of(c.parts.begin(), c.parts.end(),
                                        [](const part& p) { return p.kind == claim_kind::permit; });
        if (!counts || c.at_once || v.own.size() != c.parts.size()) return;
        known().in_background([&](unique_function<void()> over) {
            return rewrite_claim(
                known_ptr(), lease_, id_, nullptr, known().on().now() + patience,
                [over = std::move(over)](std::error_code, int) mutable { over(); });
        });
    }

    void end(std::error_code error) {
        watch_.cancel();
        timer_.cancel();
        if (error) grant_.tokens.clear();
        finish(error, std::move(grant_));
    }

    const std::string lease_;
    const claim_id id_;
    unique_function<void(place)> moved_;
    claims::listener_id listening_ = 0;
    std::int64_t created_ = 0;  // of the claim that waits, as soon as it is known
    reading_pauses pauses_;
    grant grant_;
    op watch_;
    op timer_;
    watch_request watched_;
    bool watching_ = false;
    bool looks_ = false;
    bool again_ = false;
    std::optional<std::uint32_t> told_;
};

}  // namespace

op wait_for_turn(const claims_ptr& known, std::string_view lease, claim_id id,
                 unique_function<void(place)> moved, completion<grant> done) {
    return waiting_for_turn::begin(known, deadline::max(), std::move(done), lease, id,
                                   std::move(moved));
}

}  // namespace trinco::detail::etcd
