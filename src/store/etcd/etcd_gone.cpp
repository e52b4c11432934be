// After the grant: watching the own entries, of which one may be deleted, go with its lease, or be
// marked by an operator. Read again now and then, since a watch can lose an event. Locks that are
// given back within a moment are not watched: asking for it would cost as much as the lock, and
// even to get ready for it is a part of what a lock costs.
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_conversation.hpp"
#include "store/etcd/etcd_pauses.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration patience = 5s;  // with one reading
constexpr boot_clock::duration note_after = 1s;
constexpr boot_clock::duration watch_after = 5ms;

class watching_own : public conversation<watching_own, int> {
public:
    watching_own(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    ~watching_own() {
        if (listening_ != 0) known().unlisten(listening_);
    }

    void start() {
        if (const auto* c = known().find(lease_, id_)) created_ = c->created;
        timer_ = known().on().after(watch_after, then(&watching_own::begin_watching));
    }

private:
    void begin_watching() {
        listening_ = known().listen(lease_, id_, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->end(errc::lost);
        });
        noting_ = known().on().after(note_after - watch_after, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) self->note_grant();
        });
        const auto* c = known().find(lease_, id_);
        if (c != nullptr && c->created != 0 && c->created == created_ && c->unmarked != 0) {
            watch_from(*c, c->unmarked + 1);
            look_when_due();
        } else {
            look();
        }
    }

    // Others see since when it is held, and its token; not worth a write for short locks.
    void note_grant() {
        const auto* c = known().find(lease_, id_);
        if (over() || known().link() == nullptr || c == nullptr || c->tokens.empty()) return;
        if (c->created != created_) return;
        noted_ = rewrite_claim(known_ptr(), lease_, id_, nullptr, known().on().now() + patience,
                               [](std::error_code, int) {});
    }

    void look_later(boot_clock::duration wait) {
        timer_ = known().on().after(wait, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (self && !self->over() && self->known().link() != nullptr) self->look();
        });
    }
    void look_when_due() {
        timer_ = known().on().after(known().look_every(lease_), [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (self && !self->over() && self->known().link() != nullptr) self->look_as_due();
        });
    }
    void look() {
        timer_ = op();
        looks_ = true;
        request_ = look_at(known_ptr(), lease_, id_, known().on().now() + patience,
                           then(&watching_own::seen), created_);
    }
    void seen(std::error_code error, claim_view v) {
        looks_ = false;
        if (error == errc::lost) return end(errc::lost);
        if (error) return look_later(pauses_.after_failure(known().on()));
        pauses_.have_read();
        if (created_ == 0) created_ = v.created();
        if (v.evicted) return end(errc::evicted);
        const auto* c = known().find(lease_, id_);
        if (c == nullptr || c->created != created_) return end(errc::lost);
        if (watches_.empty()) watch_from(*c, v.revision + 1);
        glance_when_due(v);
    }
    // Together with others: whether the entries are as they were.
    void glance_when_due(const claim_view& v) {
        if (v.own.empty()) return look_when_due();
        std::vector<comparison> still;
        for (const auto& own : v.own) {
            still.push_back({{own.key, {}}, comparison::target_t::mod_revision});
            still.back().number = own.mod_revision;
        }
        timer_ = known().glances.keep(
            std::move(still), known().look_every(lease_), [weak = weak_from_this()] {
                const auto self = weak.lock();
                if (self && !self->over() && self->known().link() != nullptr) self->look_as_due();
            });
    }
    void look_as_due() {
        pauses_.have_watched();
        look();
    }

    void watch_from(const known_claim& c, std::int64_t revision) {
        for (const auto& p : c.parts) {
            watch_request what;
            what.keys = {entry_key(p.name, *lease_number(lease_), id_), {}};
            what.from_revision = revision;
            watches_.push_back(link().watch(
                what,
                [weak = weak_from_this()](const watch_news& news) {
                    if (const auto self = weak.lock()) self->changed(news);
                },
                [weak = weak_from_this()](std::error_code error) {
                    if (const auto self = weak.lock()) self->watch_over(error);
                }));
        }
    }
    void changed(const watch_news& news) {
        if (over()) return;
        for (const auto& event : news.events) {
            if (event.erased) return end(errc::lost);
            const auto note = note_of(event.now.value);
            if (note && note->evicted) return end(errc::evicted);
        }
    }
    void watch_over(std::error_code error) {
        if (over()) return;
        // The next look watches anew; what is compacted away has to be read again.
        watches_.clear();
        if (looks_ || error != errc::conflict) return;
        look_later(pauses_.after_compaction(known().on()));
    }

    void end(std::error_code why) {
        watches_.clear();
        timer_.cancel();
        finish(why, 0);
    }

    const std::string lease_;
    const claim_id id_;
    claims::listener_id listening_ = 0;
    std::int64_t created_ = 0;  // of the claim that was granted
    bool looks_ = false;
    reading_pauses pauses_;
    std::vector<op> watches_;
    op timer_;
    op noting_;
    op noted_;
};

}  // namespace

op watch_own(const claims_ptr& known, std::string_view lease, claim_id id,
             unique_function<void(std::error_code)> gone) {
    return watching_own::begin(
        known, deadline::max(),
        [gone = std::move(gone)](std::error_code why, int) mutable { gone(why); }, lease, id);
}

}  // namespace trinco::detail::etcd
