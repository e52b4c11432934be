// After the grant: watching the own keys, of which one may be deleted, go with its session, or be
// marked by an operator. What an answer shows to be lost is read again, since it may be that of a
// leader that was deposed; and everything is read now and then, since an answer may not come. Locks
// that are given back within a moment are not watched.
#include <algorithm>

#include "core/backoff.hpp"
#include "store/consul/consul_calls.hpp"
#include "store/consul/consul_semaphore.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration watch_after = 5ms;
constexpr backoff pauses{.first = 200ms, .longest = 2'000ms};

class watching_own : public conversation<watching_own, int> {
public:
    watching_own(std::string_view lease, claim_id id) : lease_(lease), id_(id) {}

    ~watching_own() {
        if (listening_ != 0) known().unlisten(listening_);
    }

    void start() {
        const auto* c = known().find(lease_, id_);
        if (c == nullptr || c->held.empty()) return refuse(errc::lost);
        held_ = c->held;
        if (c->counts()) {
            place_ = semaphore_key(known().settings().prefix, c->parts.front().name);
        }
        listening_ = known().listen(lease_, id_, [weak = weak_from_this()](std::error_code gone) {
            const auto self = weak.lock();
            if (self && !self->over() && gone) self->end(errc::lost);
        });
        timer_ = known().on().after(watch_after, then(&watching_own::begin_watching));
    }

private:
    void begin_watching() {
        for (const auto& one : held_) {
            watch(one.key, [this, &one](const read_reply& news) { noticed(one, news.rows); });
        }
        if (!place_.empty()) {
            watch(place_, [this](const read_reply& news) { place_noticed(news.rows); });
        }
        look_after(known().look_every(lease_));
    }
    template <class Told>
    void watch(const std::string& key, Told told) {
        watches_.push_back(link().watch(
            {key, false, false},
            [weak = weak_from_this(), told](const read_reply& news) {
                const auto self = weak.lock();
                if (self && !self->over()) told(news);
            },
            [](std::error_code) {}));  // the looks that are due must do
    }
    void look_after(boot_clock::duration wait) {
        timer_ = known().on().after(wait, then(&watching_own::look));
    }

    void noticed(const held_entry& of, const std::vector<key_value>& rows) {
        const auto row =
            std::find_if(rows.begin(), rows.end(), [&](auto& kv) { return kv.key == of.key; });
        if (row == rows.end() || !is_entry(*row, of.id)) {
            if (!looks_) look();
        } else if (is_marked(*row)) {
            end(errc::evicted);
        }
    }
    // Of a permit, what is to stand besides.
    [[nodiscard]] bool stands(const std::optional<key_value>& place) const {
        return place_.empty() || has_place(place, held_.front().id.session);
    }
    void place_noticed(const std::vector<key_value>& rows) {
        const auto row =
            std::find_if(rows.begin(), rows.end(), [&](auto& kv) { return kv.key == place_; });
        if (!stands(row == rows.end() ? std::nullopt : std::optional(*row)) && !looks_) look();
    }
    [[nodiscard]] static bool is_marked(const key_value& kv) {
        const auto note = note_of(kv.value);
        return note && note->evicted;
    }

    void look() {
        timer_.cancel();
        looks_ = true;
        std::vector<std::string> keys;
        for (const auto& one : held_) keys.push_back(one.key);
        if (!place_.empty()) keys.push_back(place_);
        request_ = read_keys(known_ptr(), std::move(keys), known().on().now() + patience,
                             then(&watching_own::looked));
    }
    void looked(std::error_code error, found_keys keys) {
        looks_ = false;
        if (error) return look_after(pauses.wait(failures_++, known().on().random()));
        failures_ = 0;
        bool marked = false;
        for (std::size_t i = 0; i < held_.size(); ++i) {
            if (!keys[i] || !is_entry(*keys[i], held_[i].id) || !stands(keys.back())) {
                // Not of what was entered anew meanwhile.
                const auto* c = known().find(lease_, id_);
                const bool same = c != nullptr && !c->held.empty() && c->held[0].id == held_[0].id;
                if (same && c->phase == claim_phase::granted) {
                    known().lose(lease_, id_);
                }
                return end(errc::lost);
            }
            marked = marked || is_marked(*keys[i]);
        }
        if (marked) return end(errc::evicted);
        look_after(known().look_every(lease_));
    }

    void end(std::error_code why) {
        watches_.clear();
        timer_.cancel();
        finish(why, 0);
    }

    const std::string lease_;
    const claim_id id_;
    std::vector<held_entry> held_;  // as granted
    std::string place_;             // the key that lists the holders; empty: it is no permit
    claims::listener_id listening_ = 0;
    bool looks_ = false;
    std::uint32_t failures_ = 0;
    std::vector<op> watches_;
    op timer_;
};

}  // namespace

op watch_own(const claims_ptr& known, std::string_view lease, claim_id id,
             unique_function<void(std::error_code)> gone) {
    return watching_own::begin(
        known, deadline::max(),
        [gone = std::move(gone)](std::error_code why, int) mutable { gone(why); }, lease, id);
}

}  // namespace trinco::detail::consul
