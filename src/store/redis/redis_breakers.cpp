#include "store/redis/redis_breakers.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "core/breaker/record.hpp"
#include "core/names.hpp"
#include "store/redis/redis_inspection.hpp"
#include "store/redis/script_protocol.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::size_t max_under_way = 1'024;
constexpr std::size_t max_rows = 1'000;
constexpr std::size_t most_listed = 100'000;
constexpr auto list_within = 2s;
constexpr auto list_again = 60s;
constexpr auto list_retry = 5s;
constexpr std::size_t most_listing = 64;  // at once
constexpr auto stop_without_index = 250ms;

std::shared_ptr<const ready_call> ready(std::optional<script_call> call) {
    return call ? make_ready(std::move(*call)) : nullptr;
}

// Why a news is not sent: what every store says to it.
std::error_code fault_of(const breaker_identity& who, const news& n) {
    if (check_breaker_name(n.breaker)) return errc::invalid;
    if (n.slices.size() > max_slices) return errc::busy;
    fleet_record nothing;
    effects did;
    return apply(nothing, who, n, 1s, did).error;
}

}  // namespace

struct redis_breakers::batch {
    std::vector<std::string> names;
    std::vector<verdict> verdicts;
    std::vector<bool> sent;
    std::size_t open = 0;
    completion<std::vector<verdict>> done;
    std::vector<op> ops;

    // Of the call: when no element that was sent has got an answer.
    [[nodiscard]] std::error_code error() const {
        std::error_code first;
        for (std::size_t at = 0; at < verdicts.size(); ++at) {
            if (!sent[at]) continue;
            const auto error = verdicts[at].error;
            if (!is_of_the_server(error)) return {};
            if (!first || error == errc::unknown_outcome) first = error;
        }
        return first;
    }
};

redis_breakers::redis_breakers(loop& on, make_route make, std::string name_space,
                               breaker_identity who, unsigned database)
    : loop_(on),
      name_space_(std::move(name_space)),
      who_(std::move(who)),
      database_(database),
      notices_(on),
      make_(std::move(make)),
      route_(make_([this](const route_event& e) { route_changed(e); })),
      scripts_(on, *route_) {
    assert(!check_instance(who_.instance) && !check_voter(who_.voter));
}

redis_breakers::~redis_breakers() = default;

template <class T>
op redis_breakers::answer(std::error_code error, completion<T> done) {
    auto interest = std::make_shared<completion<T>>(std::move(done));
    loop_.post([interest, own = std::weak_ptr(life_), error] {
        if (own.expired()) return;
        // Taken out first: the completion may destroy its op, and the store with it.
        if (auto f = std::exchange(*interest, nullptr)) f(error, T{});
    });
    return op([interest]() noexcept { *interest = nullptr; });
}

std::error_code redis_breakers::hindrance(deadline by, std::string_view breaker) {
    if (scripts_.under_way() >= max_under_way) return errc::busy;
    if (by <= loop_.now()) return errc::unavailable;
    if (check_breaker_name(breaker)) return errc::invalid;
    return {};
}

template <class T, class Parse>
op redis_breakers::ask(std::error_code hindrance, std::shared_ptr<const ready_call> call,
                       const std::string& breaker, deadline by, completion<T> done, Parse parse) {
    if (!hindrance && !call) hindrance = errc::invalid;
    if (hindrance) return answer<T>(hindrance, std::move(done));
    return scripts_.run(std::move(call), by,
                        [this, breaker, parse, done = std::move(done)](
                            std::error_code error, const resp_reply& reply) mutable {
                            if (error) return done(error, T{});
                            auto a = parse(reply);
                            if (!a.error) learn(breaker, a.published, a.lives);
                            done(a.error, a.error ? T{} : std::move(a.value));
                        });
}

// ---- calls --------------------------------------------------------------------------------------

op redis_breakers::exchange(std::span<const news> news_of_all, deadline by,
                            completion<std::vector<verdict>> done) {
    std::error_code error;
    if (by <= loop_.now()) error = errc::unavailable;
    if (news_of_all.size() > max_news || scripts_.under_way() >= max_under_way) error = errc::busy;
    if (error || news_of_all.empty()) return answer(error, std::move(done));

    const auto all = std::make_shared<batch>();
    all->done = std::move(done);
    all->verdicts.resize(news_of_all.size());
    all->sent.resize(news_of_all.size());
    for (std::size_t at = 0; at < news_of_all.size(); ++at) {
        const news& n = news_of_all[at];
        all->names.push_back(n.breaker);
        auto call =
            check_breaker_name(n.breaker) ? std::nullopt : call_of(name_space_, who_, n, database_);
        if (!call) {
            all->verdicts[at].error = fault_of(who_, n);
            continue;
        }
        all->sent[at] = true;
        ++all->open;
        all->ops.push_back(scripts_.run(
            std::move(*call), by, [this, all, at](std::error_code failed, const resp_reply& reply) {
                element_answered(*all, at, failed, reply);
            }));
    }
    if (all->open == 0) {
        loop_.post([all, own = std::weak_ptr(life_)] {
            auto f = std::exchange(all->done, nullptr);
            if (f && !own.expired()) f({}, std::move(all->verdicts));
        });
    }
    return op([all]() noexcept {
        all->done = nullptr;
        all->ops.clear();
    });
}

void redis_breakers::element_answered(batch& of, std::size_t at, std::error_code error,
                                      const resp_reply& reply) {
    if (error) {
        of.verdicts[at].error = error;
    } else {
        auto a = verdict_from(reply);
        if (a.value.send_options) listed_.erase(of.names[at]);
        if (!a.error) learn(of.names[at], a.published, a.lives);
        of.verdicts[at] = std::move(a.value);
    }
    if (--of.open > 0) return;
    const auto failed = of.error();
    auto done = std::exchange(of.done, nullptr);
    if (done) done(failed, failed ? std::vector<verdict>() : std::move(of.verdicts));
}

std::shared_ptr<const ready_call> redis_breakers::call_of_look(const look_request& asked) {
    const view& mine = asked.mine;
    const std::array<std::uint64_t, 4> what{mine.era, mine.rev, mine.options_stamp,
                                            is_acceptable(mine) ? 1U : 0U};
    if (!look_ || what != looked_ || asked.breaker != looked_at_) {
        looked_ = what;
        looked_at_ = asked.breaker;
        look_ = make_ready(call_of(name_space_, asked));
    }
    return look_;
}

op redis_breakers::look(const look_request& request, deadline by, completion<glance> done) {
    const auto bad = hindrance(by, request.breaker);
    return ask(bad, bad ? nullptr : call_of_look(request), request.breaker, by, std::move(done),
               glance_from);
}

op redis_breakers::probe(const probe_request& request, deadline by, completion<probe_reply> done) {
    return ask(hindrance(by, request.breaker),
               ready(call_of(name_space_, who_, request, database_)), request.breaker, by,
               std::move(done), probe_reply_from);
}

op redis_breakers::control(const control_request& request, deadline by, completion<view> done) {
    return ask(hindrance(by, request.breaker), ready(call_of(name_space_, request, database_)),
               request.breaker, by, std::move(done), view_from);
}

op redis_breakers::inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                           deadline by, completion<page> done) {
    if (prefix.ends_with('*')) prefix.remove_suffix(1);
    std::error_code error;
    if (scripts_.under_way() >= max_under_way) error = errc::busy;
    if (by <= loop_.now()) error = errc::unavailable;
    if (rows == 0 || rows > max_rows) error = errc::invalid;
    if (error) return answer(error, std::move(done));
    return redis_inspection::start(
        scripts_, {name_space_, std::string(prefix), std::string(from), rows, by},
        [this, done = std::move(done)](std::error_code failed, page seen) mutable {
            // Who has read only, as `breakers watch` does, may miss what changes next, too.
            if (!failed) notices_.answered();
            done(failed, std::move(seen));
        });
}

op redis_breakers::subscribe(unique_function<void(const notice&)> on_notice) {
    auto interest = notices_.subscribe(std::move(on_notice));
    if (!std::exchange(listening_, true)) {
        route_->listen(
            breaker_channel(name_space_, database_),
            [this](std::string_view message) { notices_.came(message); },
            [this](std::string_view message) {
                if (!on_opening_) return false;
                const auto o = opening_from(message);
                return o && on_opening_(*o);
            });
    }
    return interest;
}

void redis_breakers::foretell(unique_function<bool(const opening&)> on_opening) {
    on_opening_ = std::move(on_opening);
}

op redis_breakers::stop(deadline by, completion<int> done) {
    notices_.end();
    on_opening_ = nullptr;
    auto shared = std::make_shared<completion<int>>(std::move(done));
    stopping_ = shared;
    stop_by_ = by;
    stop_timer_ = loop_.at(by, [this] { stopped(); });
    scripts_.when_idle([this] { calls_ended(); });
    if (scripts_.under_way() == 0) calls_ended();
    return op([shared]() noexcept { *shared = nullptr; });
}

// A name on its way into the index is worth a short wait: who lives for one call puts it in once.
void redis_breakers::calls_ended() {
    const auto wait = scripts_.alone() == 0 ? 0ms : stop_without_index;
    stop_timer_ = loop_.at(std::min(stop_by_, loop_.now() + wait), [this] { stopped(); });
}

void redis_breakers::stopped() {
    stop_timer_.cancel();
    const auto shared = std::exchange(stopping_, nullptr);
    if (!shared) return;
    if (auto done = std::exchange(*shared, nullptr)) done({}, 0);
}

store_traffic redis_breakers::traffic() const {
    const auto t = route_->traffic();
    return {t.requests, t.bytes_out, t.bytes_in, t.reconnects, t.redirections};
}

std::string redis_breakers::trouble() const {
    if (!down_.empty()) return down_;
    return scripts_.refusal().empty() ? notices_.trouble() : scripts_.refusal();
}

store_standing redis_breakers::standing() const {
    // A server that refuses may be left for it, and what is said of the way is what it said.
    const std::string& refusal = scripts_.refusal();
    if (scripts_.in_doubt() || (!down_.empty() && down_ != refusal)) return store_standing::away;
    return refusal.empty() ? store_standing::serves : store_standing::refuses;
}

// ---- what is learnt beside ----------------------------------------------------------------------

void redis_breakers::learn(const std::string& breaker, bool published, milliseconds lives) {
    notices_.answered();
    if (lives > 0ms) list(breaker, lives);
    if (!published) notices_.not_published();
}

void redis_breakers::list(const std::string& breaker, milliseconds lives) {
    if (listed_.size() >= most_listed) listed_.clear();
    auto& known = listed_[breaker];
    const auto now = loop_.now();
    if (now < known.again && now + lives <= known.until) return;
    if (scripts_.alone() >= most_listing) return;  // with a later answer
    const auto longer = lives + std::max<milliseconds>(lives / 8, 1s);
    known = {now + list_again, now + longer};
    scripts_.run_alone(index_call(name_space_, breaker, longer), now + list_within,
                       [this, breaker](std::error_code error, const resp_reply&) {
                           if (error)
                               listed_[breaker] = {loop_.now() + list_retry, deadline::max()};
                       });
}

void redis_breakers::route_changed(const route_event& e) {
    // The index may have been lost with the connection.
    if (e.kind == route_event::kind_t::up) listed_.clear();
    if (e.kind == route_event::kind_t::up) down_.clear();
    if (e.kind == route_event::kind_t::down) down_ = e.reason.why;
    // What is under way may have run before the channel was listened to, and be answered now.
    if (e.kind == route_event::kind_t::hearing && scripts_.under_way() > 0) notices_.answered();
    notices_.changed(e);
}

}  // namespace trinco::detail
