#include "sim/world.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace trinco::sim {
namespace {

// Without a branch: which way it goes in a heap nobody can predict.
constexpr auto later = [](const auto& a, const auto& b) {
    return (a.when > b.when) | ((a.when == b.when) & (a.order > b.order));
};

}  // namespace

boot_clock::time_point node::now() {
    return world_.now_;
}

std::uint64_t node::random() {
    return world_.rng_();
}

void node::post(unique_function<void()> f) {
    if (alive_) world_.push(world_.now_, this, std::move(f));
}

void node::post_first(unique_function<void()> f) {
    if (alive_) world_.push(world_.now_, this, std::move(f), true);
}

op node::at(detail::deadline when, unique_function<void()> f) {
    if (!alive_) return {};
    return world_.canceller(world_.push(std::max(when, world_.now_), this, std::move(f)));
}

void node::run_at(boot_clock::time_point when, unique_function<void()> f) {
    if (alive_) world_.push(std::max(when, world_.now_), this, std::move(f));
}

void node::pause_until(boot_clock::time_point when) noexcept {
    resumes_ = std::max(resumes_, when);
}

bool node::paused() const noexcept {
    return resumes_ > world_.now_;
}

world::world(std::uint64_t seed)
    : rng_(seed), now_(std::chrono::hours(24)), self_(std::make_shared<world*>(this)) {}

node& world::add_node(std::string name) {
    return *nodes_.emplace_back(std::make_unique<node>(*this, std::move(name)));
}

bool world::chance(double p) {
    return static_cast<double>(rng_() >> 11) * 0x1.0p-53 < p;
}

std::uint64_t world::below(std::uint64_t n) {
    return n == 0 ? 0 : rng_() % n;
}

boot_clock::duration world::between(boot_clock::duration a, boot_clock::duration b) {
    if (b <= a) return a;
    return a + boot_clock::duration(static_cast<std::int64_t>(
                   below(static_cast<std::uint64_t>((b - a).count()) + 1)));
}

void world::schedule(boot_clock::duration after, unique_function<void()> f) {
    push(now_ + after, nullptr, std::move(f));
}

void world::mirror_clock(std::atomic<std::int64_t>& to) noexcept {
    mirror_ = &to;
    set_now(now_);
}

void world::set_now(boot_clock::time_point t) noexcept {
    now_ = t;
    if (mirror_ != nullptr) {
        mirror_->store(t.time_since_epoch().count(), std::memory_order_relaxed);
    }
}

std::uint32_t world::push(boot_clock::time_point when, node* owner, unique_function<void()>&& f,
                          bool first) {
    std::uint32_t index;
    if (free_.empty()) {
        index = static_cast<std::uint32_t>(slots_.size());
        slots_.emplace_back();
    } else {
        index = free_.back();
        free_.pop_back();
    }
    const auto order = first ? next_first_++ : next_order_++;
    slots_[index].f = std::move(f);
    slots_[index].owner = owner;
    slots_[index].order = order;
    if (when == now_ && !first) {
        soon_.push_back({when, order, index});
    } else {
        queue_.push_back({when, order, index});
        std::push_heap(queue_.begin(), queue_.end(), later);
    }
    return index;
}

op world::canceller(std::uint32_t index) {
    return op([alive = std::weak_ptr<world*>(self_), index, order = slots_[index].order] {
        // The function is only emptied here; its place in the queue passes by itself.
        if (const auto w = alive.lock(); w && (*w)->slots_[index].order == order) {
            const auto dropped = std::move((*w)->slots_[index].f);
        }
    });
}

void world::release(std::uint32_t index) noexcept {
    slots_[index].order = 0;
    slots_[index].owner = nullptr;
    free_.push_back(index);
}

bool world::next_is_soon() const noexcept {
    if (soon_run_ == soon_.size()) return false;
    return queue_.empty() || later(queue_.front(), soon_[soon_run_]);
}

bool world::run_one(boot_clock::time_point end) {
    item it;
    if (next_is_soon()) {
        it = soon_[soon_run_];
        if (it.when > end) return false;
        if (++soon_run_ == soon_.size()) {
            soon_.clear();
            soon_run_ = 0;
        }
    } else {
        if (queue_.empty() || queue_.front().when > end) return false;
        it = queue_.front();
        std::pop_heap(queue_.begin(), queue_.end(), later);
        queue_.pop_back();
    }
    set_now(std::max(now_, it.when));
    node* owner = slots_[it.slot].owner;
    if (owner != nullptr && owner->alive_ && owner->resumes_ > now_) {
        it.when = owner->resumes_;  // keeps its order among the events of that time
        queue_.push_back(it);
        std::push_heap(queue_.begin(), queue_.end(), later);
        return true;
    }
    auto f = std::move(slots_[it.slot].f);
    const bool runs = f && (owner == nullptr || owner->alive_);
    release(it.slot);
    if (runs) {
        ++events_run_;
        f();
    }
    return true;
}

void world::run_until(boot_clock::time_point end) {
    while (run_one(end)) {
    }
    set_now(std::max(now_, end));
}

bool world::run_all(std::size_t limit) {
    for (; limit > 0; --limit) {
        if (!run_one(boot_clock::time_point::max())) return true;
    }
    return queue_.empty() && soon_.empty();
}

void world::note(std::string_view line) {
    constexpr std::uint64_t prime = 0x100000001b3ULL;  // FNV-1a, 64 bit
    for (const char c : line) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * prime;
    digest_ = (digest_ ^ '\n') * prime;
    if (keep_) history_.emplace_back(line);
}

}  // namespace trinco::sim
