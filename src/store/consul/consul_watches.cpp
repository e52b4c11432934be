#include "store/consul/consul_watches.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/backoff.hpp"
#include "store/consul/consul_fault.hpp"
#include "store/consul/consul_wire.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr auto wait = 60s;                            // at the server
constexpr auto wait_most = 60'000ms + 60'000ms / 16;  // it adds as much at random
constexpr auto answer_within = 5s;                    // after that, or without waiting
constexpr auto turn = 1s;
constexpr auto between_requests = 100ms;
constexpr backoff between_tries{100ms, 1'000ms};

}  // namespace

struct consul_watches::one {
    read_request what;
    rpc::on_news news;
    rpc::on_over over;
    std::uint64_t index = 0;  // of the last answer; 0: the state is asked for as it is
    std::optional<read_reply> told;
    std::uint32_t failures = 0;  // since it was last answered
    bool is_asked = false;
    bool is_due = false;
    bool has_new_token = false;
    std::size_t member = 0;
    std::uint64_t generation = 0;
    std::string token;
    boot_clock::time_point asked_at{};
    op call;
    op timer;
};

consul_watches::consul_watches(loop& on, consul_way& way) : loop_(on), way_(way) {
    way_.add(*this);
}

consul_watches::~consul_watches() = default;

op consul_watches::start(read_request what, rpc::on_news news, rpc::on_over over) {
    const auto id = next_++;
    const bool fits = all_.size() < most;
    auto w = std::make_shared<one>();
    w->what = std::move(what);
    w->news = std::move(news);
    w->over = std::move(over);
    all_[id] = w;
    if (fits) {
        later(id, *w, 0s);
    } else {
        w->timer = loop_.after(0s, [this, id] { finish(id, errc::busy); });
    }
    return op([this, id, life = std::weak_ptr(life_)] {
        if (!life.expired()) drop(id);
    });
}

void consul_watches::drop(std::uint64_t id) {
    const auto node = all_.extract(id);
    if (node.empty()) return;
    stop_asking(*node.mapped());
    std::erase(due_, id);
    ask_due();
}

void consul_watches::stop_asking(one& w) {
    if (!std::exchange(w.is_asked, false)) return;
    w.call.cancel();
    --under_way_;
}

// Asked again after the pause, and never more often than the rules allow.
void consul_watches::later(std::uint64_t id, one& w, boot_clock::duration pause) {
    const auto earliest = w.asked_at + between_requests;
    w.timer = loop_.at(std::max(loop_.now() + pause, earliest), [this, id] {
        const auto at = all_.find(id);
        if (at == all_.end() || std::exchange(at->second->is_due, true)) return;
        due_.push_back(id);
        ask_due();
    });
}

void consul_watches::ask_due() {
    if (due_.empty()) return;
    if (!way_.token().is_ready()) {
        trouble_ = {way_.token().trouble(), errc::denied};
        return finish_due(errc::denied);
    }
    if (!way_.is_up()) return way_.want();
    while (!due_.empty() && under_way_ < at_once) {
        const auto id = due_.front();
        due_.pop_front();
        ask(id, *all_.at(id));
    }
    // Not put off by what happens meanwhile.
    if (due_.empty() || std::exchange(is_turning_, true)) return;
    turn_ = loop_.after(turn, [this] {
        is_turning_ = false;
        give_way();
    });
}

void consul_watches::ask(std::uint64_t id, one& w) {
    w.is_due = false;
    w.is_asked = true;
    ++under_way_;
    w.member = way_.current();
    w.generation = way_.generation();
    w.token = way_.token().value();
    w.asked_at = loop_.now();
    consul_call call;
    call.path = "/v1/kv/" + escaped(w.what.key, true);
    auto until = w.asked_at + answer_within;
    if (w.index != 0) {
        call.query =
            "index=" + std::to_string(w.index) + "&wait=" + std::to_string(wait.count()) + "s";
        until += wait_most;
    }
    if (w.what.under) call.query += call.query.empty() ? "recurse" : "&recurse";
    if (w.what.consistent) call.query += call.query.empty() ? "consistent" : "&consistent";
    w.call = way_.call(w.member, lane::watches, call, until,
                       [this, id](http_answer said) { answered(id, std::move(said)); });
}

// Others wait for a place: who had one for a turn and has heard nothing comes again behind them.
void consul_watches::give_way() {
    std::vector<std::pair<boot_clock::time_point, std::uint64_t>> had_one;
    for (const auto& [id, w] : all_) {
        if (w->is_asked && w->asked_at + turn <= loop_.now()) had_one.emplace_back(w->asked_at, id);
    }
    std::sort(had_one.begin(), had_one.end());
    had_one.resize(std::min(had_one.size(), due_.size()));
    for (const auto& [since, id] : had_one) {
        auto& w = *all_.at(id);
        stop_asking(w);
        w.is_due = true;
        due_.push_back(id);
    }
    ask_due();
}

void consul_watches::answered(std::uint64_t id, http_answer said) {
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    const auto w = at->second;
    w->is_asked = false;
    --under_way_;
    ask_due();
    // Last: whoever hears it may end everything.
    if (is_answer(said)) {
        heard(id, said.response);
    } else {
        troubled(id, said);
    }
}

void consul_watches::heard(std::uint64_t id, const http_response& response) {
    const auto w = all_.at(id);  // may be dropped by its own news
    auto state = decode_read(response);
    if (!state) {
        trouble_ = {way_.name(w->member) + ": it answers, but not as Consul does", errc::invalid};
        return finish(id, errc::invalid);
    }
    trouble_ = {};
    w->failures = 0;
    w->has_new_token = false;
    // Restored from a snapshot, say: what is waited for may be long ago by the new counting.
    w->index = state->index < w->index ? 0 : state->index;
    later(id, *w, 0s);
    if (w->told && w->told->rows == state->rows) return;
    w->told = *state;
    w->news(*state);
}

void consul_watches::troubled(std::uint64_t id, const http_answer& said) {
    auto& w = *all_.at(id);
    auto what = judge(said, way_.name(w.member), way_.tls());
    const bool anew =
        what.token && !std::exchange(w.has_new_token, true) && way_.token().has_other_than(w.token);
    const auto code = what.read_code.value_or(what.code);
    if (!anew && !what.leave && (code == errc::denied || code == errc::invalid)) {
        trouble_ = {std::move(what.sentence), code};
        return finish(id, code);
    }
    if (what.leave && w.generation == way_.generation()) way_.failed(w.member, what.sentence);
    ++w.failures;
    later(id, w, anew ? 0ms : between_tries.wait(w.failures - 1, loop_.random()));
}

void consul_watches::way_is_up() {
    // In an election the way may change many times in a second.
    moving_ = loop_.at(std::max(loop_.now(), moved_ + turn), [this] { move(); });
    ask_due();
}

// What was asked of an address that was left since, perhaps because it is silent, is asked again.
void consul_watches::move() {
    moved_ = loop_.now();
    for (auto& [id, w] : all_) {
        if (!w->is_asked || w->generation == way_.generation()) continue;
        stop_asking(*w);
        later(id, *w, 0s);
    }
}

void consul_watches::way_is_hopeless(errc why) {
    finish_due(why);
}

void consul_watches::drop_all() {
    due_.clear();
    all_.clear();
    turn_.cancel();
    is_turning_ = false;
    moving_.cancel();
    under_way_ = 0;
}

void consul_watches::finish_due(errc why) {
    for (const auto id : std::exchange(due_, {})) {
        all_.at(id)->timer = loop_.after(0s, [this, id, why] { finish(id, why); });
    }
}

void consul_watches::finish(std::uint64_t id, errc why) {
    const auto node = all_.extract(id);
    if (node.empty()) return;
    stop_asking(*node.mapped());
    std::erase(due_, id);
    node.mapped()->over(make_error_code(why));
}

}  // namespace trinco::detail::consul
