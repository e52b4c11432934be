#include "store/consul/consul_requests.hpp"

#include <utility>

#include "core/backoff.hpp"
#include "store/consul/consul_fault.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr backoff between_tries{50ms, 1'000ms};

// Two words for one trouble: whether something was sent is all that they differ in.
bool is_out_of_reach(const std::error_code& error) {
    return error == errc::unavailable || error == errc::unknown_outcome;
}

}  // namespace

struct consul_requests::one {
    request what;
    deadline by{};
    completion<http_response> done;
    bool sent = false;          // and no answer yet
    bool perhaps_done = false;  // by an attempt that was not answered
    bool has_new_token = false;
    std::uint32_t tries = 0;
    std::size_t member = 0;
    std::uint64_t generation = 0;  // of the way that it took
    deadline sent_at{};
    std::string token;
    op call;
    op timer;  // half of the time is over; or it is sent again
    op limit;
};

consul_requests::consul_requests(loop& on, consul_way& way) : loop_(on), way_(way) {
    way_.add(*this);
}

consul_requests::~consul_requests() = default;

op consul_requests::start(request what, deadline by, completion<http_response> done) {
    const auto id = next_++;
    auto cancel = op([this, id, life = std::weak_ptr(life_)] {
        if (life.expired()) return;
        const auto node = all_.extract(id);
        if (node.empty()) return;
        line_of(*node.mapped()).waiting.erase(id);
        over(*node.mapped());
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

void consul_requests::way_is_up() {
    without_way_ = errc::unavailable;
    for (auto* line : {&urgent_, &usual_}) {
        for (const auto id : std::exchange(line->waiting, {})) pump(id);
    }
}

consul_requests::waiting_line& consul_requests::line_of(const one& r) noexcept {
    return r.what.urgent ? urgent_ : usual_;
}

void consul_requests::pump(std::uint64_t id) {
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    auto& r = *at->second;
    if (loop_.now() >= r.by) return;  // its time is over: it is told so, and certainly not sent
    if (!way_.token().is_ready()) {
        trouble_ = {way_.token().trouble(), r.what.changes, errc::denied};
        return finish_later(id, r, errc::denied);
    }
    auto& line = line_of(r);
    const bool is_up = way_.is_up();
    if (is_up && line.under_way < line.places) return send(id, r);
    line.waiting.insert(id);
    if (!is_up) way_.want();
}

void consul_requests::finish_later(std::uint64_t id, one& r, errc why) {
    r.timer = loop_.after(0s, [this, id, why] { finish(id, make_error_code(why)); });
}

void consul_requests::send(std::uint64_t id, one& r) {
    r.member = way_.current();
    r.generation = way_.generation();
    r.token = way_.token().value();
    r.sent = true;
    ++line_of(r).under_way;
    r.sent_at = loop_.now();
    r.call = way_.call(r.member, lane::requests, r.what.what, r.by,
                       [this, id](http_answer said) { answered(id, std::move(said)); });
    if (way_.has_others()) {
        r.timer = loop_.at(r.sent_at + (r.by - r.sent_at) / 2, [this, id] { half_over(id); });
    }
}

void consul_requests::answered(std::uint64_t id, http_answer said) {
    if (!said.error) heard_ = loop_.now();
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    auto& r = *at->second;
    r.timer.cancel();
    if (is_answer(said)) {
        // That something can be read does not show that it can be changed.
        if (r.what.changes || !trouble_.changes) trouble_ = {};
        return finish(id, {}, std::move(said.response));
    }
    auto what = judge(said, way_.name(r.member), way_.tls());
    const bool anew =
        what.token && !std::exchange(r.has_new_token, true) && way_.token().has_other_than(r.token);
    if (what.leave) leave(r, what.sentence);
    over(r);
    if (anew && loop_.now() < r.by) return pump(id);
    const bool changes = r.what.changes;
    if (what.code == errc::unknown_outcome && changes) r.perhaps_done = true;
    const auto code = changes ? what.code : what.read_code.value_or(what.code);
    const bool helps = code == errc::unavailable ||
                       (code == errc::unknown_outcome && (!changes || r.what.repeatable));
    if (helps && loop_.now() < r.by) {
        if (!what.leave) trouble_ = {std::move(what.sentence), changes, code};
        return repeat(id, r);
    }
    const bool is_unknown = r.perhaps_done && is_out_of_reach(make_error_code(code));
    const auto told = is_unknown                                  ? errc::unknown_outcome
                      : code == errc::unknown_outcome && !changes ? errc::unavailable
                                                                  : code;
    if (told != errc::lost) trouble_ = {std::move(what.sentence), changes, told};
    finish(id, make_error_code(told));
}

bool consul_requests::trouble_explains(const std::error_code& told) const {
    if (told == trouble_.code) return true;
    return is_out_of_reach(told) && is_out_of_reach(make_error_code(trouble_.code));
}

bool consul_requests::way_explains(const std::error_code& told) const {
    return is_out_of_reach(told) || told == without_way_;
}

void consul_requests::cannot_read(errc code) {
    trouble_ = {way_.name(way_.current()) + ": it answers, but not as Consul does", true, code};
}

void consul_requests::repeat(std::uint64_t id, one& r) {
    const auto pause = r.tries == 0 ? 0ms : between_tries.wait(r.tries - 1, loop_.random());
    ++r.tries;
    r.timer = loop_.after(pause, [this, id] { pump(id); });
}

void consul_requests::half_over(std::uint64_t id) {
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    auto& r = *at->second;
    // A member that answers others only takes its time.
    if (!r.sent || heard_ > r.sent_at) return;
    leave(r, way_.name(r.member) + ": does not answer");
    if (r.what.changes && !r.what.repeatable) return;
    if (r.what.changes) r.perhaps_done = true;
    r.call.cancel();
    over(r);
    pump(id);
}

// An address that was left since, and has come back, did not fail by what it was asked before.
void consul_requests::leave(const one& r, const std::string& sentence) {
    if (r.generation == way_.generation()) way_.failed(r.member, sentence);
}

void consul_requests::too_late(std::uint64_t id) {
    const auto& r = *all_.at(id);
    // What is under way is told so by its call, which knows whether anything was sent.
    if (r.sent) return;
    finish(id, make_error_code(r.perhaps_done ? errc::unknown_outcome : errc::unavailable));
}

void consul_requests::way_is_hopeless(errc why) {
    without_way_ = why;
    for (auto* line : {&urgent_, &usual_}) {
        for (const auto id : std::exchange(line->waiting, {})) {
            const auto at = all_.find(id);
            if (at == all_.end()) continue;
            auto& r = *at->second;
            finish_later(id, r, r.perhaps_done ? errc::unknown_outcome : why);
        }
    }
}

void consul_requests::drop_all() {
    all_.clear();
    usual_ = {at_once};
    urgent_ = {urgent_at_once};
}

// It is under way no more: the oldest of those that wait for its place come next.
void consul_requests::over(one& r) {
    if (!std::exchange(r.sent, false)) return;
    auto& line = line_of(r);
    --line.under_way;
    // Of those that wait some may be over themselves: they take no place.
    while (line.under_way < line.places && !line.waiting.empty() && way_.is_up()) {
        pump(line.waiting.extract(line.waiting.begin()).value());
    }
}

void consul_requests::finish(std::uint64_t id, std::error_code error, http_response reply) {
    const auto node = all_.extract(id);
    if (node.empty()) return;
    line_of(*node.mapped()).waiting.erase(id);
    over(*node.mapped());
    node.mapped()->done(error, std::move(reply));
}

}  // namespace trinco::detail::consul
