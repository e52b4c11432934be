#include "store/local/local_lock_watch.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto reread_every = 1s;
constexpr auto reread_far_back_every = 30s;
// A little more than a third of the usual TTL: a renewal comes first (local_round::look_early).
constexpr auto look_at_byte_far_back_every = 6s;
constexpr auto first_pause = 1ms;
constexpr auto first_look_at_end = 5ms;

owned_descriptor process_of(std::int64_t pid) {
    return owned_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(const owned_descriptor& process) {
    ::pollfd p{process.get(), POLLIN, 0};
    return ::poll(&p, 1, 0) > 0;
}

}  // namespace

// Removes who has died or run out.
class local_lock_watch::reap_job final : public local_job {
public:
    reap_job(std::set<std::int64_t> dead, std::shared_ptr<local_lives> lives, local_process self)
        : local_job(local_job::kind::write),
          dead_(std::move(dead)),
          lives_(std::move(lives)),
          self_(std::move(self)) {}
    void run(local_file& in, local_round& after) override {
        local_queues(in, after, lives_, self_).reap(dead_);
        after.look = true;
    }
    void finish(std::error_code) noexcept override {}

private:
    std::set<std::int64_t> dead_;
    std::shared_ptr<local_lives> lives_;
    local_process self_;
};

local_lock_watch::local_lock_watch(std::shared_ptr<local_outlet> outlet,
                                   std::weak_ptr<lock_listeners> to,
                                   std::shared_ptr<local_lives> lives, local_process self)
    : outlet_(std::move(outlet)),
      to_(std::move(to)),
      lives_(std::move(lives)),
      self_(std::move(self)),
      drop_after_(boot_clock::now() + reread_every) {}

bool local_lock_watch::add(std::uint64_t listener, kind k, std::string_view what, claim_id id) {
    auto one = std::make_shared<item>();
    one->listener = listener;
    one->what = k;
    one->name = what;
    one->id = id;
    const std::lock_guard hold(m_);
    items_.emplace(listener, std::move(one));
    return k == kind::end && expects_;
}

void local_lock_watch::remove(std::uint64_t listener) {
    const std::lock_guard hold(m_);
    items_.erase(listener);
}

void local_lock_watch::remove_all() {
    const std::lock_guard hold(m_);
    items_.clear();
}

// Those whom it may concern: a process with thousands of waiting locks also locks and unlocks.
std::vector<std::shared_ptr<local_lock_watch::item>> local_lock_watch::items(
    const local_round* after) {
    std::vector<std::shared_ptr<item>> all;
    const std::lock_guard hold(m_);
    // Who is there now is looked at; who comes later is not expected any more.
    if (after == nullptr) expects_ = false;
    for (const auto& one : items_) {
        const item& i = *one.second;
        const bool is_of_a_claim = i.what == kind::turn || i.what == kind::end;
        const bool may_concern =
            after == nullptr || !is_of_a_claim || i.row == 0 || after->claims.contains(i.row);
        if (may_concern) all.push_back(one.second);
    }
    return all;
}

void local_lock_watch::expect_listener() {
    const std::lock_guard hold(m_);
    if (items_.empty() && !expects_) next_ = boot_clock::time_point::max();
    expects_ = true;
    read_again_after(first_look_at_end);
}

boot_clock::time_point local_lock_watch::next_look() {
    const std::lock_guard hold(m_);
    if (!items_.empty() || expects_) return std::min({next_, next_bytes_, next_ends_});
    return drop_due_ ? drop_after_ : boot_clock::time_point::max();
}

bool local_lock_watch::must_look(local_file& at, boot_clock::time_point by) {
    const auto due = next_look();
    if (due > by) return false;
    if (next_ <= by || (next_bytes_ > by && next_ends_ > by)) return true;
    return (next_bytes_ <= by && !all_live()) || (next_ends_ <= by && !all_go_on(at));
}

bool local_lock_watch::all_live() {
    next_bytes_ = boot_clock::time_point::max();
    for (auto& [session, one] : watched_) {
        if (!one.by_byte) continue;
        if (!lives_->is_alive(session)) return false;
        look_at_byte_again(one);
    }
    return true;
}

bool local_lock_watch::all_go_on(local_file& at) {
    next_ends_ = boot_clock::time_point::max();
    now_ = at.now().count();
    local_round none;
    local_queues q(at, none, lives_, self_);
    for (const auto session : std::set(ending_)) {
        const auto ends = q.end_of(session);
        if (!ends || *ends <= now_) return false;
        expect_end(session, *ends);
    }
    return true;
}

void local_lock_watch::add_descriptors(std::vector<::pollfd>& to) {
    for (const auto& one : watched_) {
        if (one.second.process.get() >= 0) to.push_back({one.second.process.get(), POLLIN, 0});
    }
}

std::shared_ptr<local_job> local_lock_watch::look(local_file& at, const local_round* after) {
    if (after == nullptr) {
        next_ = boot_clock::now() + reread_far_back_every;
        next_bytes_ = next_ends_ = boot_clock::time_point::max();
        ending_.clear();
        for (auto& one : watched_) one.second.by_byte = one.second.holds = false;
    }
    if (after != nullptr && after->granted_at_once) expect_listener();
    auto all = items(after);
    if (after != nullptr && !after->ended.empty()) {
        // What this process ended itself need not be read.
        std::erase_if(all, [&](const auto& one) {
            const bool is_over = one->what != kind::holder && after->ended.contains(one->name);
            if (is_over) tell_end(*one, errc::lost);
            return is_over;
        });
    }
    // Once a second is enough, and this is on the way of every lock and unlock.
    const bool drops = boot_clock::now() >= drop_after_;
    drop_due_ = !drops && !lives_->own().empty();
    if (all.empty() && (!drops || lives_->own().empty())) return nullptr;
    if (drops) drop_after_ = boot_clock::now() + reread_every;
    auto before = std::exchange(concerned_, {});
    dead_.clear();
    over_ = false;
    now_ = at.now().count();
    local_round none;
    const bool within = at.db().in_transaction();
    if (!within) at.begin_reading();
    try {
        local_queues q(at, none, lives_, self_);
        for (const auto& one : all) look_at(q, *one);
        if (drops) q.drop_ended();
        if (!within) at.commit();
    } catch (...) {
        if (!within) at.roll_back();
        throw;
    }
    if (after != nullptr) {
        concerned_.merge(before);
    } else {
        std::erase_if(watched_, [this](const auto& w) { return !concerned_.contains(w.first); });
    }
    if (dead_.empty() && !over_) return nullptr;
    return std::make_shared<reap_job>(dead_, lives_, self_);
}

void local_lock_watch::look_at(local_queues& q, item& one) {
    if (one.what != kind::turn) read_again_after(reread_every);
    if (one.what == kind::holder) return look_at_holder(q, one);
    const auto c = q.find(one.name, one.id);
    if (c) one.row = c->id;
    if (one.what == kind::end) {
        if (c && !c->evicted) return look_again(c->ends, now_);
        return tell_end(one, c ? errc::evicted : errc::lost);
    }
    if (!c) return tell_end(one, errc::lost);
    if (c->missing == 0) return finish(one.listener, {}, q.grant_of(c->id));
    look_at_turn(q, one, *c);
}

void local_lock_watch::look_at_turn(local_queues& q, item& one, const local_queues::claim_row& c) {
    expect_end(c.session, c.ends);
    look_ahead(q.ahead_of(c.id));
    if (one.what != kind::turn_and_place) return;
    const auto at = q.place_of(c.id);
    const bool first = !std::exchange(one.told, true);
    if (std::exchange(one.place, at.ahead) == at.ahead || first) return;
    post(one.listener, [at](lock_listeners&, lock_listeners::iterator l) {
        const auto call = l->second.moved;
        (*call)(at);
    });
}

void local_lock_watch::look_at_holder(local_queues& q, item& one) {
    auto holder = q.holder_of(one.name);
    std::optional<std::pair<std::int64_t, std::string>> shows;
    if (holder) shows.emplace(holder->first, holder->second.info);
    const bool first = !std::exchange(one.told, true);
    if (std::exchange(one.shown, shows) == shows && !first) return;
    auto e = holder ? std::optional(std::move(holder->second)) : std::nullopt;
    post(one.listener, [e = std::move(e)](lock_listeners&, lock_listeners::iterator l) {
        const auto call = l->second.seen;
        (*call)(e);
    });
}

void local_lock_watch::look_ahead(const std::vector<local_queues::party>& parties) {
    if (parties.empty()) read_again_after(reread_every);
    for (const auto& p : parties) {
        if (p.has_turn) read_again_after(reread_every);
        over_ = over_ || p.ends <= now_;
        expect_end(p.session, p.ends);
        if (concerned_.insert(p.session).second) watch(p);
        if (is_told_of(p)) continue;
        if (p.same_pid_space) read_again_after(reread_every);
        auto& one = watched_.at(p.session);
        one.by_byte = true;
        one.holds = one.holds || p.has_turn;
        look_at_byte_again(one);
    }
}

bool local_lock_watch::is_ours(const local_queues::party& p) const {
    return p.same_pid_space && !self_.pid_space.empty() && p.pid == self_.pid;
}

// Whether the end of its process shows without being looked for.
bool local_lock_watch::is_told_of(const local_queues::party& p) const {
    const auto at = watched_.find(p.session);
    return is_ours(p) || (at != watched_.end() && at->second.process.get() >= 0);
}

void local_lock_watch::watch(const local_queues::party& p) {
    const auto [at, fresh] = watched_.try_emplace(p.session);
    auto& process = at->second.process;
    // First the descriptor, then the question: who lives now is who the descriptor is of.
    if (fresh && !is_ours(p) && p.same_pid_space && !self_.pid_space.empty() && p.pid > 0) {
        process = process_of(p.pid);
    }
    if (!lives_->is_alive(p.session)) {
        dead_.insert(p.session);
        return;
    }
    // The process is gone and a descendant goes on, or it never was to be seen from here.
    if (process.get() >= 0 && has_ended(process)) {
        process = owned_descriptor();
        at->second.pause = first_pause;
    }
}

// When a process has just ended, what it leaves behind mostly ends with it.
void local_lock_watch::look_at_byte_again(watched& one) {
    boot_clock::duration pause = look_at_byte_far_back_every;
    if (one.holds) {
        pause = std::exchange(one.pause,
                              std::min<boot_clock::duration>(2 * one.pause, look_at_byte_every));
    }
    next_bytes_ = std::min(next_bytes_, boot_clock::now() + pause);
}

void local_lock_watch::read_again_after(boot_clock::duration d) {
    next_ = std::min(next_, boot_clock::now() + d);
}

// Not before it is over: a moment too early would only be looked at again.
void local_lock_watch::look_again(std::int64_t at, std::int64_t now) {
    read_again_after(std::chrono::microseconds(std::max<std::int64_t>(at - now, 0) + 1));
}

void local_lock_watch::expect_end(std::int64_t session, std::int64_t ends) {
    ending_.insert(session);
    const auto left = std::chrono::microseconds(std::max<std::int64_t>(ends - now_, 0) + 1);
    next_ends_ = std::min(next_ends_, boot_clock::now() + left);
}

// `call` runs on the loop's thread, if the listener is still there then.
template <class F>
void local_lock_watch::post(std::uint64_t listener, F call) {
    outlet_->post([to = to_, listener, call = std::move(call)]() mutable {
        const auto all = to.lock();
        if (!all) return;
        const auto at = all->find(listener);
        if (at != all->end()) call(*all, at);
    });
}

void local_lock_watch::finish(std::uint64_t listener, std::error_code error, grant g) {
    remove(listener);
    post(listener, [error, g = std::move(g)](lock_listeners& all, lock_listeners::iterator l) {
        auto call = std::move(l->second.granted);
        all.erase(l);
        call(error, g);
    });
}

// Of a claim: no more is to be told of it.
void local_lock_watch::tell_end(const item& one, std::error_code why) {
    if (one.what != kind::end) return finish(one.listener, why, {});
    remove(one.listener);
    post(one.listener, [why](lock_listeners& all, lock_listeners::iterator l) {
        auto call = std::move(l->second.gone);
        all.erase(l);
        call(why);
    });
}

}  // namespace trinco::detail
