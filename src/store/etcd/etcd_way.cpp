#include "store/etcd/etcd_way.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "store/etcd/etcd_methods.hpp"
#include "store/etcd/etcd_wire.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto answer_within = 2s;
constexpr auto next_after = 200ms;
constexpr auto round_pause = 20ms;  // from begin to begin, whatever is wished
constexpr backoff between_rounds{100ms, 1'000ms};

// It heard us and speaks etcd, whatever it thinks of us.
bool is_answer(const wire_status& status) {
    switch (status.code) {
        case wire_code::ok:
        case wire_code::invalid_argument:
        case wire_code::permission_denied:
        case wire_code::unauthenticated:
            return status.good() || status.text.find("etcdserver:") != std::string::npos;
        default: return false;
    }
}

}  // namespace

etcd_way::etcd_way(loop& on, transport& by) : loop_(on), by_(by) {}

bool etcd_way::is_up() const {
    return up_ && by_.connected({current_, lane::requests});
}

void etcd_way::want() {
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

void etcd_way::failed(std::size_t endpoint, const std::string& sentence) {
    if (!up_ || endpoint != current_) return;
    up_ = false;
    left_ = true;
    ++generation_;
    trouble_ = sentence;
    // Later, since whoever says so may be in the middle of something.
    rest_ = loop_.at(std::max(loop_.now(), begun_ + round_pause), [this] {
        if (!up_ && asked_.empty() && somebody_waits()) begin_round();
    });
}

void etcd_way::begin_round() {
    rest_.cancel();
    begun_ = loop_.now();
    failures_ = hopeless_ = 0;
    order_.resize(by_.endpoints());
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

void etcd_way::ask_next() {
    next_.cancel();
    if (order_.empty()) return;
    const auto endpoint = order_.back();
    order_.pop_back();
    ask(endpoint);
    if (!order_.empty()) next_ = loop_.after(next_after, [this] { ask_next(); });
}

void etcd_way::ask(std::size_t endpoint) {
    by_.renew({endpoint, lane::requests});
    asked_[endpoint] = by_.call({endpoint, lane::requests}, method::status, encode_status(),
                                {{}, true}, loop_.now() + answer_within,
                                [this, endpoint](const wire_status& status, const std::string&) {
                                    answered(endpoint, status);
                                });
}

void etcd_way::answered(std::size_t endpoint, const wire_status& status) {
    const auto mine = asked_.extract(endpoint);
    if (is_answer(status)) return came_up(endpoint);
    const auto what = judge(status, by_.name(endpoint));
    trouble_ = status.code == wire_code::deadline_exceeded
                   ? by_.name(endpoint) + ": does not answer within 2 s"
                   : what.sentence;
    by_.renew({endpoint, lane::requests});
    ++failures_;
    if (what.hopeless) {
        ++hopeless_;
        hopeless_code_ = what.code;
    }
    if (!order_.empty()) return ask_next();
    if (asked_.empty()) round_failed();
}

void etcd_way::came_up(std::size_t endpoint) {
    next_.cancel();
    order_.clear();
    asked_.clear();
    rounds_ = 0;
    trouble_.clear();
    if (generation_ == 0 || endpoint != current_) ++generation_;
    current_ = endpoint;
    left_ = false;
    up_ = true;
    for (auto* one : users_) one->way_is_up();
}

void etcd_way::round_failed() {
    if (hopeless_ == failures_) {
        for (auto* one : users_) one->way_is_hopeless(hopeless_code_);
    }
    const auto rest =
        std::max<boot_clock::duration>(between_rounds.wait(rounds_++, loop_.random()), round_pause);
    rest_ = loop_.after(rest, [this] {
        if (!up_ && asked_.empty() && somebody_waits()) begin_round();
    });
}

bool etcd_way::somebody_waits() const {
    return std::any_of(users_.begin(), users_.end(), [](const auto* one) { return one->waits(); });
}

}  // namespace trinco::detail::etcd
