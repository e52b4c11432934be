// What is said of a request that was sent again: an attempt that may have been carried out is not
// made undone by a later one that was refused.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/breakers/operator.hpp"
#include "apps/trinco/call/call_breaker.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::completion;
using detail::deadline;
using detail::op;

// How the next requests end, looks excepted; without an entry, well.
struct fate {
    std::mutex m;
    std::deque<errc> next;
    detail::view fleet;

    void set(std::deque<errc> ends) {
        const std::lock_guard hold(m);
        next = std::move(ends);
    }
    std::error_code take() {
        const std::lock_guard hold(m);
        if (next.empty()) return {};
        const errc first = next.front();
        next.pop_front();
        return make_error_code(first);
    }
    std::size_t left() {
        const std::lock_guard hold(m);
        return next.size();
    }
};

class doomed_breakers final : public detail::breaker_store {
public:
    doomed_breakers(detail::event_loop& on, std::shared_ptr<fate> of)
        : on_(on), of_(std::move(of)) {}

    op exchange(std::span<const detail::news> batch, deadline,
                completion<std::vector<detail::verdict>> done) override {
        detail::verdict v;
        v.fleet = of_->fleet;
        v.counted = true;
        return answer(std::move(done), std::vector<detail::verdict>(batch.size(), v));
    }
    op look(const detail::look_request&, deadline, completion<detail::glance> done) override {
        detail::glance g;
        g.fleet = of_->fleet;
        return on_.after(0ms, [d = std::move(done), g]() mutable { d({}, g); });
    }
    op probe(const detail::probe_request&, deadline,
             completion<detail::probe_reply> done) override {
        detail::probe_reply r;
        r.granted = true;
        r.fleet = of_->fleet;
        return answer(std::move(done), std::move(r));
    }
    op control(const detail::control_request&, deadline, completion<detail::view> done) override {
        return answer(std::move(done), of_->fleet);
    }
    op inspect(std::string_view, std::string_view, std::size_t, deadline,
               completion<detail::page>) override {
        return {};
    }
    op subscribe(detail::unique_function<void(const detail::notice&)>) override { return {}; }
    op stop(deadline, completion<int> done) override {
        return on_.after(0ms, [d = std::move(done)]() mutable { d({}, 0); });
    }

private:
    template <class T>
    op answer(completion<T> done, T value) {
        return on_.after(0ms, [d = std::move(done), e = of_->take(),
                               v = std::move(value)]() mutable { d(e, std::move(v)); });
    }

    detail::event_loop& on_;
    std::shared_ptr<fate> of_;
};

class doomed_driver final : public detail::store_driver {
public:
    explicit doomed_driver(std::shared_ptr<fate> of) : of_(std::move(of)) {}
    std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> all{"doomed"};
        return all;
    }
    detail::opened_stores open(const detail::store_url&, detail::event_loop& on, std::string_view,
                               const detail::breaker_identity&) override {
        return {std::make_unique<doomed_breakers>(on, of_), nullptr};
    }

private:
    std::shared_ptr<fate> of_;
};

class Doubt : public testing::Test {
protected:
    static breaker_options patient() {
        breaker_options o = call_defaults();
        o.store_timeout = 5s;  // each request ends at once
        o.degraded_after = 5s;
        return o;
    }

    // A call that was admitted as `as`, and settles as the requests end.
    std::error_code settle(admission::kind_t as, std::deque<errc> ends) {
        call_breaker breaker(in_.at, "pay", patient(), false);
        EXPECT_EQ(as, breaker.ask({}).kind);
        fate_->set(std::move(ends));
        const auto error = breaker.settle(outcome::success, 1ms);
        EXPECT_EQ(0U, fate_->left());
        return error;
    }

    problem operate_on_it(std::deque<errc> ends) {
        fate_->set(std::move(ends));
        detail::control_request what;
        what.breaker = "pay";
        const auto result = operate(in_, what, "change the breaker pay");
        const auto* const why = std::get_if<problem>(&result);
        return why != nullptr ? *why : problem{};
    }

    std::shared_ptr<fate> fate_ = std::make_shared<fate>();
    breakers_place in_{
        open("doomed:", {driver(std::make_shared<doomed_driver>(fate_))}, {}), "", {}};
};

TEST_F(Doubt, AnOutcomeThatMayBeCountedIsNotCalledUncounted) {
    using kind = admission::kind_t;
    for (const errc last : {errc::unavailable, errc::denied, errc::busy}) {
        EXPECT_EQ(errc::unknown_outcome, settle(kind::counted, {errc::unknown_outcome, last}));
        EXPECT_EQ(last, settle(kind::counted, {last}));
    }
    EXPECT_FALSE(settle(kind::counted, {errc::unknown_outcome}));
}

TEST_F(Doubt, AProbeThatMayBeSettledIsNotCalledUnsettled) {
    using kind = admission::kind_t;
    fate_->fleet.state = breaker_state::open;
    fate_->fleet.era = 2;
    for (const errc last : {errc::unavailable, errc::denied, errc::busy}) {
        EXPECT_EQ(errc::unknown_outcome, settle(kind::probe, {errc::unknown_outcome, last}));
        EXPECT_EQ(last, settle(kind::probe, {last}));
    }
    EXPECT_FALSE(settle(kind::probe, {errc::unknown_outcome}));
}

TEST_F(Doubt, AnOperatorIsNotToldThatNothingHappenedWhenItMayHave) {
    const problem in_doubt = operate_on_it({errc::unknown_outcome, errc::denied});
    const problem twice = operate_on_it({errc::unknown_outcome, errc::unknown_outcome});
    EXPECT_EQ(twice.sentence, in_doubt.sentence);
    EXPECT_EQ(twice.code, in_doubt.code);
    const problem denied = operate_on_it({errc::denied});
    EXPECT_EQ(exit_denied, denied.code);
    EXPECT_EQ("", operate_on_it({errc::unknown_outcome}).sentence);
}

}  // namespace
}  // namespace trinco::program
