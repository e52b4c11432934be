#include "store/member_way.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto next_after = 200ms;
constexpr auto round_pause = 20ms;  // from begin to begin, whatever is wished
constexpr backoff between_rounds{100ms, 1'000ms};

}  // namespace

member_way::member_way(loop& on, way_members& to) : loop_(on), to_(to) {}

bool member_way::is_up() const {
    return up_ && to_.connected(current_);
}

void member_way::want() {
    if (is_up() || !asked_.empty()) return;
    up_ = false;
    const auto now = loop_.now();
    const auto earliest = begun_ + round_pause;
    if (now >= earliest) {
        begin_round();
    } else {
        rest_ = loop_.at(earliest, [this] { begin_round(); });
    }
}

void member_way::failed(std::size_t member, const std::string& sentence) {
    if (!up_ || member != current_) return;
    up_ = false;
    left_ = true;
    ++generation_;
    trouble_ = sentence;
    // Later, since whoever says so may be in the middle of something.
    rest_ = loop_.at(std::max(loop_.now(), begun_ + round_pause), [this] {
        if (!up_ && asked_.empty() && somebody_waits()) begin_round();
    });
}

void member_way::begin_round() {
    rest_.cancel();
    begun_ = loop_.now();
    failures_ = hopeless_ = refusals_ = 0;
    refused_ = false;
    order_.resize(to_.count());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (auto i = order_.size(); i > 1; --i) {
        std::swap(order_[i - 1], order_[loop_.random() % i]);
    }
    if (generation_ > 0) {
        const auto at = std::find(order_.begin(), order_.end(), current_);
        order_.erase(at);
        order_.insert(left_ ? order_.begin() : order_.end(), current_);
    }
    ask_next();
}

void member_way::ask_next() {
    next_.cancel();
    if (order_.empty()) return;
    const auto member = order_.back();
    order_.pop_back();
    ask(member);
    if (!order_.empty()) next_ = loop_.after(next_after, [this] { ask_next(); });
}

void member_way::ask(std::size_t member) {
    asked_[member] = to_.ask(member, loop_.now() + answer_within, [this, member](member_word said) {
        answered(member, std::move(said));
    });
}

void member_way::answered(std::size_t member, member_word said) {
    const auto mine = asked_.extract(member);
    if (said.good) return came_up(member);
    trouble_ = std::move(said.sentence);
    ++failures_;
    if (said.refused) ++refusals_;
    if (said.hopeless) {
        ++hopeless_;
        hopeless_code_ = said.code;
    }
    if (!order_.empty()) return ask_next();
    if (asked_.empty()) round_failed();
}

void member_way::came_up(std::size_t member) {
    next_.cancel();
    order_.clear();
    asked_.clear();
    rounds_ = 0;
    refused_ = false;
    trouble_.clear();
    if (generation_ == 0 || member != current_) ++generation_;
    current_ = member;
    left_ = false;
    up_ = true;
    for (auto* one : users_) one->way_is_up();
}

void member_way::round_failed() {
    refused_ = refusals_ == failures_;
    if (hopeless_ == failures_) {
        for (auto* one : users_) one->way_is_hopeless(hopeless_code_);
    }
    const auto rest =
        std::max<boot_clock::duration>(between_rounds.wait(rounds_++, loop_.random()), round_pause);
    rest_ = loop_.after(rest, [this] {
        if (!up_ && asked_.empty() && somebody_waits()) begin_round();
    });
}

bool member_way::somebody_waits() const {
    return std::any_of(users_.begin(), users_.end(), [](const auto* one) { return one->waits(); });
}

void member_way::stop() {
    up_ = false;
    order_.clear();
    asked_.clear();
    next_.cancel();
    rest_.cancel();
}

}  // namespace trinco::detail
