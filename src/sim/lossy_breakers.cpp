#include "sim/lossy_breakers.hpp"

#include <algorithm>

#include "core/names.hpp"
#include "trinco/error.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;
using detail::notice;

namespace {

constexpr boot_clock::duration heartbeat_every = 500ms;
constexpr boot_clock::duration hole_patience = 200ms;  // as long as a retransmission may take
constexpr boot_clock::duration foretold_by = 3ms;
constexpr std::size_t max_under_way = 1'024;
constexpr std::size_t max_rows = 1'000;
constexpr std::int64_t year_2025_us = 1'735'689'600'000'000;

}  // namespace

// ---- the server ---------------------------------------------------------------------------------

lossy_breaker_server::lossy_breaker_server(world& w, network& net, node& at)
    : world_(w), net_(net), at_(at), clock_offset_us_(year_2025_us) {
    memory_ = std::make_unique<detail::memory_breaker_server>([this] {
        return detail::store_time(clock_offset_us_) +
               std::chrono::duration_cast<detail::store_time>(world_.now().time_since_epoch());
    });
    listen();
}

lossy_breaker_server::~lossy_breaker_server() {
    stop_listening();
}

void lossy_breaker_server::listen() {
    listener_ = std::make_shared<detail::memory_breaker_server::listener>();
    listener_->heard = [this](const notice& n) { publish(n); };
    memory_->subscribe(at_, listener_);
}

void lossy_breaker_server::stop_listening() {
    memory_->unsubscribe(*listener_);
    listener_->ended = true;
}

void lossy_breaker_server::restart(rows from, boot_clock::duration clock_back) {
    down_ = false;
    ++life_;
    clock_offset_us_ -= std::chrono::duration_cast<detail::store_time>(clock_back).count();
    stop_listening();  // what the life before had not published yet is lost
    memory_->restore(std::move(from));
    listen();
    for (auto& s : streams_) renew(*s);
    net_.break_connections(at_);
}

void lossy_breaker_server::crash() {
    down_ = true;
    for (auto& s : streams_) renew(*s);
    net_.break_connections(at_);
}

void lossy_breaker_server::start(rows from) {
    restart(std::move(from));
}

void lossy_breaker_server::flush_all() {
    memory_->clear();
}

lossy_breaker_server::stream& lossy_breaker_server::attach(lossy_breakers& client) {
    streams_.push_back(
        std::make_unique<stream>(stream{client, net_.connection(at_, client.client_), 0, 0, {}}));
    return *streams_.back();
}

void lossy_breaker_server::hang_up(lossy_breakers& client) {
    if (const auto* gone = std::exchange(client.stream_, nullptr)) {
        streams_.erase(std::find_if(streams_.begin(), streams_.end(),
                                    [&](const auto& s) { return s.get() == gone; }));
    }
}

void lossy_breaker_server::renew(stream& s) {
    s.last = 0;
    s.acknowledged = 0;
    s.heartbeat.cancel();
}

void lossy_breaker_server::publish(const notice& n) {
    // The memory server's own word for restore(); here connections tell.
    if (n.kind == notice::kind_t::new_server || n.kind == notice::kind_t::gap) return;
    const auto told = std::make_shared<const notice>(n);
    for (auto& s : streams_) {
        const auto connection = net_.connection(at_, s->to.client_);
        if (connection != s->connection) {  // broken by the network alone, and made anew
            renew(*s);
            s->connection = connection;
        }
        const bool quiet = s->last == s->acknowledged;
        net_.send(at_, s->to.client_,
                  [to = std::weak_ptr(s->to.self_), connection, number = ++s->last, told] {
                      if (const auto alive = to.lock()) {
                          (*alive)->arrived(connection, number, told);
                      }
                  });
        if (quiet) {
            auto& quiet_one = *s;
            s->heartbeat = at_.after(heartbeat_every, [this, &quiet_one] { beat(quiet_one); });
        }
    }
}

// Repeated until the client has acknowledged it.
void lossy_breaker_server::beat(stream& s) {
    if (s.last == s.acknowledged) return;
    net_.send(at_, s.to.client_,
              [to = std::weak_ptr(s.to.self_), connection = s.connection, last = s.last] {
                  if (const auto alive = to.lock()) (*alive)->beaten(connection, last);
              });
    s.heartbeat = at_.after(heartbeat_every, [this, &s] { beat(s); });
}

// ---- the client ---------------------------------------------------------------------------------

void lossy_breakers::pending::leave() noexcept {
    if (auto* store = std::exchange(of, nullptr)) {
        std::erase_if(store->calls_, [this](const auto& p) { return p.get() == this; });
    }
}

template <class T>
struct lossy_breakers::pending_call final : pending {
    detail::completion<T> done;
    void finish(std::error_code ec, T&& value) {
        leave();
        timer.cancel();
        if (auto f = std::exchange(done, nullptr)) f(ec, std::move(value));
    }
    void fail(std::error_code ec) override { finish(ec, T{}); }
    void forget() override {
        timer.cancel();
        done = nullptr;
    }
};

lossy_breakers::lossy_breakers(network& net, node& client, lossy_breaker_server& server,
                               detail::breaker_identity who)
    : net_(net),
      client_(client),
      server_(server),
      who_(std::move(who)),
      stream_(&server.attach(*this)) {
    known_life_ = server_.life_;
    break_watch_ = net_.on_break(client_, server_.at_, [this] { broke(); });
}

lossy_breakers::~lossy_breakers() {
    server_.hang_up(*this);
    const auto waiting = std::exchange(calls_, {});
    for (const auto& p : waiting) p->of = nullptr;
    for (const auto& p : waiting) p->forget();
}

template <class T, class Serve>
op lossy_breakers::call(std::error_code error, detail::deadline by, detail::completion<T> done,
                        Serve serve) {
    // What needs no server to be answered.
    if (by <= client_.now()) error = errc::unavailable;
    if (calls_.size() >= max_under_way) error = errc::busy;
    if (!error && server_.down_) error = errc::unavailable;
    const auto mine = std::make_shared<pending_call<T>>();
    mine->done = std::move(done);
    mine->of = this;
    mine->connection = net_.connection(client_, server_.at_);
    calls_.push_back(mine);
    if (error) {
        mine->timer = client_.at(client_.now(), [mine, error] { mine->fail(error); });
    } else {
        mine->timer = client_.at(by, [mine] { mine->fail(errc::unknown_outcome); });
        net_.send(
            client_, server_.at_,
            [&net = net_, &server = server_, &client = client_, serve = std::move(serve), mine] {
                if (server.down_) return;
                ++server.requests_;
                // Of two copies one completes the call; the other finds it completed.
                net.send(server.at_, client, [mine, answer = serve(server)]() mutable {
                    mine->finish({}, std::move(answer));
                });
            });
    }
    return op([mine] {
        mine->forget();
        mine->leave();
    });
}

op lossy_breakers::exchange(std::span<const detail::news> batch, detail::deadline by,
                            detail::completion<std::vector<detail::verdict>> done) {
    const auto sent = std::make_shared<const std::vector<detail::news>>(batch.begin(), batch.end());
    std::error_code error;
    if (batch.size() > detail::max_news) error = errc::busy;
    return call<std::vector<detail::verdict>>(
        error, by, std::move(done), [sent, who = who_](lossy_breaker_server& server) {
            std::vector<detail::verdict> verdicts;
            verdicts.reserve(sent->size());
            for (const auto& n : *sent) verdicts.push_back(server.memory().exchange(who, n));
            return verdicts;
        });
}

op lossy_breakers::look(const detail::look_request& request, detail::deadline by,
                        detail::completion<detail::glance> done) {
    const bool invalid = detail::check_breaker_name(request.breaker).has_value();
    return call<detail::glance>(
        invalid ? make_error_code(errc::invalid) : std::error_code{}, by, std::move(done),
        [request](lossy_breaker_server& server) { return server.memory().look(request); });
}

op lossy_breakers::probe(const detail::probe_request& request, detail::deadline by,
                         detail::completion<detail::probe_reply> done) {
    const bool invalid = request.token == 0 || detail::check_breaker_name(request.breaker);
    return call<detail::probe_reply>(invalid ? make_error_code(errc::invalid) : std::error_code{},
                                     by, std::move(done),
                                     [request, who = who_](lossy_breaker_server& server) {
                                         return server.memory().probe(who, request);
                                     });
}

op lossy_breakers::control(const detail::control_request& request, detail::deadline by,
                           detail::completion<detail::view> done) {
    struct answer {
        std::error_code error;
        detail::view after;
    };
    const bool invalid = detail::check_breaker_name(request.breaker).has_value();
    return call<answer>(
        invalid ? make_error_code(errc::invalid) : std::error_code{}, by,
        [done = std::move(done)](std::error_code ec, const answer& a) mutable {
            done(ec ? ec : a.error, a.after);
        },
        [request](lossy_breaker_server& server) {
            answer a;
            a.after = server.memory().control(request, a.error);
            return a;
        });
}

op lossy_breakers::inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                           detail::deadline by, detail::completion<detail::page> done) {
    if (prefix.ends_with('*')) prefix.remove_suffix(1);
    const bool invalid = rows == 0 || rows > max_rows;
    return call<detail::page>(
        invalid ? make_error_code(errc::invalid) : std::error_code{}, by, std::move(done),
        [prefix = std::string(prefix), from = std::string(from), rows](
            lossy_breaker_server& server) { return server.memory().inspect(prefix, from, rows); });
}

op lossy_breakers::subscribe(unique_function<void(const notice&)> on_notice) {
    subscriber_ = std::make_shared<unique_function<void(const notice&)>>(std::move(on_notice));
    if (server_.life_ > 1) {
        client_.post([mine = subscriber_] {
            if (*mine) (*mine)({notice::kind_t::new_server, {}, {}});
        });
    }
    return op([mine = subscriber_] { *mine = nullptr; });
}

op lossy_breakers::stop(detail::deadline by, detail::completion<int> done) {
    if (subscriber_) *subscriber_ = nullptr;
    on_opening_ = nullptr;
    return call<int>({}, by, std::move(done), [](lossy_breaker_server&) { return 0; });
}

void lossy_breakers::foretell(unique_function<bool(const detail::opening&)> on_opening) {
    on_opening_ = std::move(on_opening);
}

// As the link to a Redis does.
bool lossy_breakers::may_wait(const notice& n) {
    const auto& v = n.fleet;
    return on_opening_ && n.kind == notice::kind_t::changed && v.state == breaker_state::open &&
           v.over == override_kind::none && v.remaining.count() > 0 &&
           on_opening_({n.breaker, v.era, v.remaining, v.reason});
}

void lossy_breakers::tell_waiting() {
    waiting_timer_.cancel();
    const auto alive = std::weak_ptr(self_);
    for (const auto& n : std::exchange(waiting_, {})) {
        const auto to = subscriber_;
        if (to && *to) (*to)(n);
        if (alive.expired()) return;
    }
}

void lossy_breakers::tell(const notice& n) {
    if (may_wait(n)) {
        if (waiting_.empty())
            waiting_timer_ = client_.after(foretold_by, [this] { tell_waiting(); });
        waiting_.push_back(n);
        return;
    }
    const auto alive = std::weak_ptr(self_);
    tell_waiting();
    if (alive.expired()) return;
    const auto to = subscriber_;
    if (to && *to) (*to)(n);
}

// The connection is gone: what was asked on it stays without an answer, and of notices the last
// ones may be missing. With it the life of the server may be another.
void lossy_breakers::broke() {
    const auto now_on = net_.connection(client_, server_.at_);
    std::vector<std::shared_ptr<pending>> lost;
    std::erase_if(calls_, [&](const auto& c) {
        if (c->connection == now_on) return false;
        c->of = nullptr;
        lost.push_back(c);
        return true;
    });
    expected_ = 1;
    highest_beat_ = 0;
    held_.clear();
    waiting_.clear();
    waiting_timer_.cancel();
    waits_for_hole_ = false;
    hole_timer_.cancel();
    const bool other = std::exchange(known_life_, server_.life_) != server_.life_;
    const auto alive = std::weak_ptr(self_);
    tell({other ? notice::kind_t::new_server : notice::kind_t::gap, {}, {}});
    for (const auto& p : lost) {
        if (alive.expired()) return;
        p->fail(errc::unknown_outcome);
    }
}

void lossy_breakers::beaten(std::uint64_t connection, std::uint64_t number) {
    if (connection != net_.connection(client_, server_.at_)) return;
    highest_beat_ = std::max(highest_beat_, number);
    net_.send(client_, server_.at_, [me = std::weak_ptr(self_), connection, number] {
        const auto alive = me.lock();
        auto* const s = alive ? (*alive)->stream_ : nullptr;
        if (s != nullptr && s->connection == connection) {
            s->acknowledged = std::max(s->acknowledged, number);
        }
    });
    look_for_holes();
}

void lossy_breakers::arrived(std::uint64_t connection, std::uint64_t number, const notice_ptr& n) {
    if (connection != net_.connection(client_, server_.at_)) return;
    if (number >= expected_) held_.emplace(number, n);
    const auto alive = std::weak_ptr(self_);
    while (!held_.empty() && held_.begin()->first == expected_) {
        const auto next = held_.extract(held_.begin()).mapped();
        ++expected_;
        tell(*next);
        if (alive.expired()) return;
    }
    look_for_holes();
}

void lossy_breakers::look_for_holes() {
    const bool hole = !held_.empty() || highest_beat_ >= expected_;
    if (hole == waits_for_hole_) return;
    waits_for_hole_ = hole;
    if (hole) {
        hole_timer_ = client_.after(hole_patience, [this] { give_up_on_holes(); });
    } else {
        hole_timer_.cancel();
    }
}

void lossy_breakers::give_up_on_holes() {
    expected_ = std::max(held_.empty() ? expected_ : held_.rbegin()->first + 1, highest_beat_ + 1);
    held_.clear();
    waits_for_hole_ = false;
    tell({notice::kind_t::gap, {}, {}});
}

}  // namespace trinco::sim
