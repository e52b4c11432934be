// The one suite of breaker_store: every rule of store/breaker_store.hpp and of core/loop.hpp, for
// any store that comes with a fixture.
//
//     struct memory_fixture : breaker_store_fixture { ... };
//     INSTANTIATE_BREAKER_STORE_SUITE(memory, [] { return std::make_unique<memory_fixture>(); });
//
// (within namespace trinco::detail::test; in CMake the test links trinco_breaker_store_suite, which
// holds the cases.) Time passes only through the fixture, so that a simulated store is tested
// without waiting and a real one with short waits. Options of the suite are small (windows of
// seconds, probes of a second); no case lets more than about three seconds pass, but those of
// faults::breakers_kept, which need half a minute and are for virtual time.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/breaker/policy.hpp"
#include "core/loop.hpp"
#include "store/breaker_store.hpp"

namespace trinco::detail::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// What a store brings to the suite.
class breaker_store_fixture {
public:
    virtual ~breaker_store_fixture() = default;

    // A store object for this identity on the shared server, on a loop that the fixture runs. It is
    // destroyed before the fixture.
    [[nodiscard]] virtual std::unique_ptr<breaker_store> make_store(breaker_identity who) = 0;
    // The loop of all stores.
    [[nodiscard]] virtual loop& on() = 0;
    // Lets time pass on the loop and on the store's clock, running what becomes due.
    virtual void pass(milliseconds d) = 0;
    // Runs the loop until done() or the limit has passed; whether done() was true.
    virtual bool run_until(const std::function<bool()>& done, milliseconds limit) = 0;

    // ---- what only some can do: a case that needs it is skipped where it is not offered ---------
    struct faults {
        std::function<void()> lose_data;             // the server forgets everything
        std::function<void()> miss_messages;         // subscribers get one gap
        std::function<std::size_t()> breakers_kept;  // keys that have not run out
        std::function<void(bool)> drop_replies;      // requests arrive, answers do not
        std::function<void(bool)> drop_requests;     // nothing arrives
    };
    [[nodiscard]] virtual faults can() { return {}; }
    // How much later than asked for something may be seen: clocks of milliseconds, round trips.
    [[nodiscard]] virtual milliseconds slack() const { return 0ms; }
    // Whether a clock of the suite can be stopped: exact `remaining` is compared then.
    [[nodiscard]] virtual bool is_exact() const { return true; }
};

// Nothing: there is no such store here (a server that is not installed), and the case is skipped.
using make_fixture = std::function<std::unique_ptr<breaker_store_fixture>()>;

template <class T>
struct answer {
    std::error_code error;
    T value;
};

// One store object, its notices, and blocking forms of its calls.
class member {
public:
    member(breaker_store_fixture& in, std::string instance, std::string voter);
    ~member();
    member(const member&) = delete;
    member& operator=(const member&) = delete;

    [[nodiscard]] breaker_store& store() { return *store_; }

    answer<std::vector<verdict>> exchange(const std::vector<news>& batch);
    // One element; the error is the element's or the call's.
    verdict tell(const news& n);
    // What it shows teaches the member nothing: its view stays that of its last exchange.
    answer<glance> look(const look_request& q);
    glance look(const std::string& breaker);
    answer<probe_reply> probe(const probe_request& p);
    answer<view> control(const control_request& c);
    answer<page> inspect(std::string_view prefix, std::string_view from = {},
                         std::size_t rows = 100);

    // A news about this breaker that carries what the member knows: its last view, the next seq,
    // and the options until they are stamped.
    [[nodiscard]] news about(const std::string& breaker, counts n = {}, milliseconds age = 0ms);
    verdict report(const std::string& breaker, counts n, milliseconds age = 0ms) {
        return tell(about(breaker, n, age));
    }
    probe_reply take(const std::string& breaker, std::uint64_t token) {
        return step(breaker, probe_step::take, token);
    }
    probe_reply step(const std::string& breaker, probe_step s, std::uint64_t token);
    [[nodiscard]] look_request looking(const std::string& breaker);
    [[nodiscard]] probe_request asking(const std::string& breaker, std::uint64_t token,
                                       probe_step s = probe_step::take);

    void subscribe();
    void unsubscribe() { subscription_.cancel(); }
    std::vector<notice> heard;

    [[nodiscard]] view& known(const std::string& breaker) { return of(breaker).last; }
    // As a process that starts anew with the same identity knows nothing.
    void forget() { about_.clear(); }

private:
    struct memory {
        std::string breaker;
        view last;
        std::uint64_t seq = 0;
        std::uint64_t own_stamp = 0;
        std::string options;
        std::uint64_t options_stamp = 0;
    };
    memory& of(const std::string& breaker);
    void learn(const std::string& breaker, const view& v);

    template <class T>
    answer<T> wait(const std::function<op(completion<T>)>& call);

    breaker_store_fixture& in_;
    std::unique_ptr<breaker_store> store_;
    std::vector<memory> about_;
    op subscription_;
};

// The options that the suite's members are configured with.
[[nodiscard]] policy suite_policy();
[[nodiscard]] inline counts calls(std::uint64_t ok, std::uint64_t bad) {
    counts n;
    n.success = ok;
    n.failure = bad;
    return n;
}

class BreakerStoreSuite : public testing::TestWithParam<make_fixture> {
protected:
    void SetUp() override {
        fixture_ = GetParam()();
        if (!fixture_) GTEST_SKIP() << "there is no server for it, or it is left to the long run";
    }
    [[nodiscard]] breaker_store_fixture& fixture() { return *fixture_; }
    [[nodiscard]] member& add(const std::string& voter);
    [[nodiscard]] deadline soon() { return fixture_->on().now() + 1s; }
    // An operator's request, with an id of its own.
    [[nodiscard]] static control_request order(control_verb verb, const std::string& breaker,
                                               std::uint64_t id, milliseconds expires = 0ms);
    // Two voters fail until the fleet's breaker is open.
    void open_it(member& a, member& b, const std::string& breaker);
    // Equal, or a little less where clocks cannot be stopped.
    void expect_about(milliseconds seen, milliseconds expected);

    std::unique_ptr<breaker_store_fixture> fixture_;
    std::vector<std::unique_ptr<member>> members_;

    void TearDown() override { members_.clear(); }
};

}  // namespace trinco::detail::test

// In a .cpp of the test, once per store.
#define INSTANTIATE_BREAKER_STORE_SUITE(name, make)   \
    INSTANTIATE_TEST_SUITE_P(name, BreakerStoreSuite, \
                             testing::Values(::trinco::detail::test::make_fixture(make)))
