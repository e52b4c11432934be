#include "tests/contract/breaker_store_suite.hpp"

namespace trinco::detail::test {

policy suite_policy() {
    policy p;
    p.window = 2s;
    p.window_slices = 10;
    p.minimum_calls = 10;
    p.open_for = 500ms;
    p.open_max = 5s;
    p.jitter = 0;
    p.probe_timeout = 1s;
    p.half_open_probes = 4;
    p.sync_interval = 20ms;
    p.live_for = 10s;
    p.key_ttl = 20s;
    return p;
}

member::member(breaker_store_fixture& in, std::string instance, std::string voter)
    : in_(in), store_(in.make_store({std::move(instance), std::move(voter)})) {}

member::~member() {
    unsubscribe();
}

member::memory& member::of(const std::string& breaker) {
    for (memory& m : about_) {
        if (m.breaker == breaker) return m;
    }
    about_.push_back({breaker, {}, 0, 0, {}, 0});
    return about_.back();
}

void member::learn(const std::string& breaker, const view& v) {
    memory& m = of(breaker);
    if (!m.last.newer_than(v)) m.last = v;
}

template <class T>
answer<T> member::wait(const std::function<op(completion<T>)>& call) {
    std::optional<answer<T>> got;
    bool inside = true;
    bool was_inside = false;
    const op interest = call([&](std::error_code ec, T value) {
        was_inside = inside;
        EXPECT_FALSE(got.has_value()) << "completed twice";
        got = answer<T>{ec, std::move(value)};
    });
    inside = false;
    in_.run_until([&] { return got.has_value(); }, 2s);
    EXPECT_TRUE(got.has_value()) << "not completed";
    EXPECT_FALSE(was_inside) << "completed inside the call";
    return got.value_or(answer<T>{std::make_error_code(std::errc::timed_out), {}});
}

answer<std::vector<verdict>> member::exchange(const std::vector<news>& batch) {
    auto a = wait<std::vector<verdict>>([&](completion<std::vector<verdict>> done) {
        return store_->exchange(batch, in_.on().now() + 1s, std::move(done));
    });
    for (std::size_t i = 0; !a.error && i < a.value.size() && i < batch.size(); ++i) {
        const verdict& v = a.value[i];
        if (v.error) continue;
        learn(batch[i].breaker, v.fleet);
        memory& m = of(batch[i].breaker);
        if (v.own_stamp != 0) m.own_stamp = v.own_stamp;
        if (!v.options.empty()) {
            m.options = v.options;
            m.options_stamp = v.fleet.options_stamp;
        }
    }
    return a;
}

verdict member::tell(const news& n) {
    auto a = exchange({n});
    verdict v;
    if (!a.error && a.value.size() == 1) return a.value.front();
    v.error = a.error ? a.error : std::make_error_code(std::errc::protocol_error);
    return v;
}

look_request member::looking(const std::string& breaker) {
    look_request q;
    q.breaker = breaker;
    q.mine = of(breaker).last;
    q.mine.options_stamp = of(breaker).options_stamp;
    return q;
}

answer<glance> member::look(const look_request& q) {
    return wait<glance>([&](completion<glance> done) {
        return store_->look(q, in_.on().now() + 1s, std::move(done));
    });
}

glance member::look(const std::string& breaker) {
    auto a = look(looking(breaker));
    EXPECT_FALSE(a.error) << a.error.message();
    return a.value;
}

answer<probe_reply> member::probe(const probe_request& p) {
    auto a = wait<probe_reply>([&](completion<probe_reply> done) {
        return store_->probe(p, in_.on().now() + 1s, std::move(done));
    });
    if (!a.error) learn(p.breaker, a.value.fleet);
    return a;
}

answer<view> member::control(const control_request& c) {
    auto a = wait<view>([&](completion<view> done) {
        return store_->control(c, in_.on().now() + 1s, std::move(done));
    });
    if (!a.error) learn(c.breaker, a.value);
    return a;
}

answer<page> member::inspect(std::string_view prefix, std::string_view from, std::size_t rows) {
    return wait<page>([&](completion<page> done) {
        return store_->inspect(prefix, from, rows, in_.on().now() + 1s, std::move(done));
    });
}

news member::about(const std::string& breaker, counts n, milliseconds age) {
    memory& m = of(breaker);
    news message;
    message.breaker = breaker;
    message.mine = m.last;
    message.mine.options_stamp = m.options_stamp;
    message.seq = ++m.seq;
    message.own_stamp = m.own_stamp;
    if (m.own_stamp == 0) message.options = to_text(suite_policy());
    if (!n.empty()) message.slices.push_back({n, age});
    return message;
}

probe_request member::asking(const std::string& breaker, std::uint64_t token, probe_step s) {
    probe_request p;
    p.breaker = breaker;
    p.mine = of(breaker).last;
    p.step = s;
    p.token = token;
    return p;
}

probe_reply member::step(const std::string& breaker, probe_step s, std::uint64_t token) {
    auto a = probe(asking(breaker, token, s));
    EXPECT_FALSE(a.error) << a.error.message();
    return a.value;
}

void member::subscribe() {
    subscription_ = store_->subscribe([this](const notice& n) { heard.push_back(n); });
}

// ---- the suite's own ----------------------------------------------------------------------------

member& BreakerStoreSuite::add(const std::string& voter) {
    const auto n = std::to_string(members_.size() + 1);
    members_.push_back(std::make_unique<member>(*fixture_, voter + "-" + n, voter));
    return *members_.back();
}

control_request BreakerStoreSuite::order(control_verb verb, const std::string& breaker,
                                         std::uint64_t id, milliseconds expires) {
    control_request c;
    c.id = id;
    c.breaker = breaker;
    c.who = "ann";
    c.reason = "drill";
    c.verb = verb;
    c.expires = expires;
    return c;
}

void BreakerStoreSuite::open_it(member& a, member& b, const std::string& breaker) {
    a.report(breaker, {});
    for (int i = 0; i < 20; ++i) {
        member& who = i % 2 == 0 ? a : b;
        if (who.report(breaker, calls(0, 10)).fleet.state == breaker_state::open) break;
        fixture_->pass(50ms);
    }
    ASSERT_EQ(a.report(breaker, {}).fleet.state, breaker_state::open);
    ASSERT_EQ(b.report(breaker, {}).fleet.state, breaker_state::open);
}

void BreakerStoreSuite::expect_about(milliseconds seen, milliseconds expected) {
    EXPECT_LE(seen, expected);
    EXPECT_GE(seen, fixture_->is_exact() ? expected : expected - fixture_->slack());
}

}  // namespace trinco::detail::test
