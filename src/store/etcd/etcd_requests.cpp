#include "store/etcd/etcd_requests.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "store/etcd/etcd_fault.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr backoff between_tries{50ms, 1'000ms};

// Two words for one trouble: whether something was sent is all that they differ in.
bool is_out_of_reach(const std::error_code& error) {
    return error == errc::unavailable || error == errc::unknown_outcome;
}

}  // namespace

struct etcd_requests::one {
    request what;
    deadline by{};
    completion<answer> done;
    bool sent = false;       // and no answer yet
    bool logged_in = false;  // once more, for this request
    std::uint32_t tries = 0;
    std::size_t endpoint = 0;
    deadline sent_at{};
    std::string token;
    op call;
    op timer;  // half of the time is over; or it is sent again
    op limit;
};

etcd_requests::etcd_requests(loop& on, etcd_way& way, etcd_login& login)
    : loop_(on), way_(way), login_(login) {
    way_.add(*this);
}

etcd_requests::~etcd_requests() = default;

op etcd_requests::start(request what, deadline by, completion<answer> done) {
    const auto id = next_++;
    auto cancel = op([this, id, life = std::weak_ptr(life_)] {
        if (life.expired()) return;
        waiting_.erase(id);
        const auto node = all_.extract(id);
        if (!node.empty()) over(*node.mapped());
    });
    const bool fits = all_.size() < most;
    auto& r = all_[id];
    r = std::make_unique<one>();
    r->what = std::move(what);
    r->by = by;
    r->done = std::move(done);
    if (!fits) {
        r->limit = loop_.after(0s, [this, id] { finish(id, make_error_code(errc::busy)); });
        return cancel;
    }
    r->limit = loop_.at(by, [this, id] { too_late(id); });
    pump(id);
    return cancel;
}

void etcd_requests::way_is_up() {
    without_way_ = errc::unavailable;
    pump_all();
}

void etcd_requests::pump_all() {
    for (const auto id : std::exchange(waiting_, {})) pump(id);
}

void etcd_requests::pump(std::uint64_t id) {
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    auto& r = *at->second;
    if (loop_.now() >= r.by) return;  // its time is over: it is told so, and certainly not sent
    if (way_.is_up() && login_.is_ready()) {
        if (under_way_ < at_once) return send(id, r);
        waiting_.insert(id);
        return;
    }
    if (login_.is_refused()) {
        // In a turn of its own: this may be the call that began it.
        r.timer = loop_.after(0s, [this, id] { finish(id, make_error_code(errc::denied)); });
        return;
    }
    waiting_.insert(id);
    way_.want();
    login_.want();
}

void etcd_requests::send(std::uint64_t id, one& r) {
    r.endpoint = way_.current();
    r.token = login_.token();
    r.sent = true;
    ++under_way_;
    r.sent_at = loop_.now();
    r.call =
        way_.by().call({r.endpoint, lane::requests}, r.what.method, r.what.bytes, {r.token, true},
                       r.by + 1s, [this, id](const wire_status& status, std::string reply) {
                           answered(id, status, std::move(reply));
                       });
    if (way_.has_others()) {
        r.timer = loop_.at(r.sent_at + (r.by - r.sent_at) / 2, [this, id] { half_over(id); });
    }
}

void etcd_requests::answered(std::uint64_t id, const wire_status& status, std::string reply) {
    heard_ = loop_.now();
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    auto& r = *at->second;
    r.timer.cancel();
    if (status.good()) {
        // That something can be read does not show that it can be changed.
        const bool such = trouble_.method == r.what.method && (r.what.changes || !trouble_.changes);
        if (such) trouble_ = {};
        return finish(id, {}, {std::move(reply)});
    }
    const auto what = judge(status, way_.by().name(r.endpoint));
    const bool logs_in = what.login && login_.has_user() && !std::exchange(r.logged_in, true);
    // Known before others are sent in its place, so that they do not go the same way.
    if (logs_in) login_.expired(r.token);
    if (what.leave) way_.failed(r.endpoint, what.sentence);
    over(r);
    if (logs_in) return pump(id);
    const bool changed = r.what.changes && !(what.settled && r.what.harmless);
    const auto code = changed ? what.code : what.read_code.value_or(what.code);
    if (code == errc::unavailable || (code == errc::unknown_outcome && !r.what.changes)) {
        return repeat(id, r);
    }
    if (code != errc::lost) have_trouble(r, code, what.sentence, what.settled);
    finish(id, make_error_code(code), {{}, what.settled});
}

void etcd_requests::have_trouble(const one& r, errc code, std::string sentence, bool settled) {
    trouble_ = {std::move(sentence), r.what.method, r.what.changes, code, settled};
}

bool etcd_requests::trouble_explains(const std::error_code& told) const {
    if (told == trouble_.code || (told == errc::busy && trouble_.settled)) return true;
    return is_out_of_reach(told) && is_out_of_reach(make_error_code(trouble_.code));
}

bool etcd_requests::way_explains(const std::error_code& told) const {
    return is_out_of_reach(told) || told == without_way_;
}

void etcd_requests::repeat(std::uint64_t id, one& r) {
    const auto pause = r.tries == 0 ? 0ms : between_tries.wait(r.tries - 1, loop_.random());
    ++r.tries;
    r.timer = loop_.after(pause, [this, id] { pump(id); });
}

void etcd_requests::half_over(std::uint64_t id) {
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    auto& r = *at->second;
    // A member that answers others only takes its time.
    if (!r.sent || heard_ > r.sent_at) return;
    way_.failed(r.endpoint, way_.by().name(r.endpoint) + ": does not answer");
    if (r.what.changes) return;
    r.call.cancel();
    over(r);
    pump(id);
}

void etcd_requests::too_late(std::uint64_t id) {
    const auto& r = *all_.at(id);
    const auto code = r.sent && r.what.changes ? errc::unknown_outcome : errc::unavailable;
    if (r.sent) have_trouble(r, code, way_.by().name(r.endpoint) + ": did not answer in time");
    finish(id, make_error_code(code));
}

void etcd_requests::way_is_hopeless(errc why) {
    without_way_ = why;
    for (const auto id : std::exchange(waiting_, {})) finish(id, make_error_code(why));
}

void etcd_requests::drop_all() {
    waiting_.clear();
    all_.clear();
    under_way_ = 0;
}

// It is under way no more: the oldest of those that wait come next.
void etcd_requests::over(one& r) {
    if (!std::exchange(r.sent, false)) return;
    --under_way_;
    // Of those that wait some may be over themselves: they take no place.
    while (under_way_ < at_once && !waiting_.empty() && way_.is_up() && login_.is_ready()) {
        pump(waiting_.extract(waiting_.begin()).value());
    }
}

void etcd_requests::finish(std::uint64_t id, std::error_code error, answer reply) {
    waiting_.erase(id);
    const auto node = all_.extract(id);
    if (node.empty()) return;
    over(*node.mapped());
    node.mapped()->done(error, std::move(reply));
}

}  // namespace trinco::detail::etcd
