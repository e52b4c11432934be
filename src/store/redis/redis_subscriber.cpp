#include "store/redis/redis_subscriber.hpp"

#include <algorithm>
#include <utility>

#include "store/redis/script_protocol.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using event_kind = route_event::kind_t;

constexpr auto poll_every = 100ms;  // the default of sync_interval
constexpr auto deaf_for = 1s;       // a connection that only just broke comes back
constexpr auto mute_for = 10min;    // then it is seen whether it may be written to again
constexpr std::size_t most_told = 100'000;

}  // namespace

op redis_subscriber::subscribe(unique_function<void(const notice&)> heard) {
    end();
    listener_ = std::make_shared<listener>();
    listener_->heard = std::move(heard);
    if (!hearing_) deaf_since_ = on_.now();
    poll_later();
    return op([to = listener_]() noexcept { to->ended = true; });
}

void redis_subscriber::end() noexcept {
    if (listener_) listener_->ended = true;
    listener_ = nullptr;
    poll_.cancel();
}

void redis_subscriber::changed(const route_event& e) {
    switch (e.kind) {
        case event_kind::up:
            up_ = true;
            poll_later();
            // Whether it is another server is said next.
            if (missed_) settling_ = on_.after(0ms, [this] { settle_gap(); });
            return;
        case event_kind::down: up_ = false; return;
        case event_kind::other_server:
            missed_ = knows_ = false;
            told_.clear();
            return tell({notice::kind_t::new_server, {}, {}});
        case event_kind::hearing:
            missed_ = std::exchange(knows_, false) || missed_;
            hearing_ = true;
            denied_ = false;
            deaf_.clear();
            return settle_gap();
        case event_kind::deaf:
            if (std::exchange(hearing_, false)) {
                missed_ = true;
                deaf_since_ = on_.now();
            }
            denied_ = e.reason.error == errc::denied;
            deaf_ = e.reason.why;
            return poll_later();
    }
}

void redis_subscriber::settle_gap() {
    if (!up_ || !hearing_ || !std::exchange(missed_, false)) return;
    tell_gap();
}

void redis_subscriber::came(std::string_view message) {
    const auto n = notice_from(message);
    if (!n) return;
    if (n->kind == notice::kind_t::changed) {
        if (told_.size() >= most_told) told_.clear();
        auto& last = told_[n->breaker];
        if (std::pair(n->fleet.era, n->fleet.rev) <= std::pair(last.era, last.rev)) return;
        last = {n->fleet.era, n->fleet.rev};
    }
    tell(*n);
}

void redis_subscriber::not_published() {
    mute_until_ = on_.now() + mute_for;
    poll_later();
}

std::string redis_subscriber::trouble() const {
    if (!listener_ || listener_->ended || !must_poll()) return {};
    const std::string why = !hearing_ ? deaf_ : "the channel may not be written to";
    return why.empty() ? why : "changes are asked for instead of being told: " + why;
}

bool redis_subscriber::must_poll() const {
    if (!up_ || !listener_ || listener_->ended) return false;
    return !hearing_ || mute_until_ > on_.now();
}

void redis_subscriber::poll_later() {
    if (!must_poll()) return poll_.cancel();
    auto next = on_.now() + poll_every;
    if (!hearing_ && !denied_) next = std::max(next, deaf_since_ + deaf_for);
    poll_ = on_.at(next, [this] {
        poll_later();
        if (must_poll()) tell_gap();
    });
}

// The last that is done wherever it is done.
void redis_subscriber::tell(const notice& n) {
    const auto to = listener_;
    if (to && !to->ended) to->heard(n);
}

}  // namespace trinco::detail
