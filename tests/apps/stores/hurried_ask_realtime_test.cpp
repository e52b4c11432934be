// Questions that end when the store says why it will not answer, and not before.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/trinco/stores/hurried_ask.hpp"
#include "net/event_loop.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::completion;
using detail::deadline;
using detail::op;
using detail::store_standing;

struct condition {
    std::atomic<store_standing> standing{store_standing::serves};
    std::atomic<bool> answers{false};
    std::atomic<bool> in_doubt{false};
    std::atomic<std::uint64_t> requests{0};
    std::atomic<int> dropped{0};
};

// Answers looks, or by the deadline, as a store does; nothing else is asked here.
class slow_breakers final : public detail::breaker_store {
public:
    slow_breakers(detail::event_loop& on, std::shared_ptr<condition> of)
        : on_(on), of_(std::move(of)) {}

    op look(const detail::look_request&, deadline by, completion<detail::glance> done) override {
        ++of_->requests;
        const bool answers = of_->answers;
        auto timer = std::make_shared<op>();
        *timer = on_.at(answers ? on_.now() : by, [d = std::move(done), answers]() mutable {
            d(answers ? std::error_code() : errc::unknown_outcome, {});
        });
        return op([timer, of = of_]() noexcept {
            timer->cancel();
            ++of->dropped;
        });
    }
    op exchange(std::span<const detail::news>, deadline,
                completion<std::vector<detail::verdict>>) override {
        return {};
    }
    op probe(const detail::probe_request&, deadline, completion<detail::probe_reply>) override {
        return {};
    }
    op control(const detail::control_request&, deadline, completion<detail::view>) override {
        return {};
    }
    op inspect(std::string_view, std::string_view, std::size_t, deadline,
               completion<detail::page>) override {
        return {};
    }
    op subscribe(detail::unique_function<void(const detail::notice&)>) override { return {}; }
    op stop(deadline, completion<int> done) override {
        return on_.after(0ms, [d = std::move(done)]() mutable { d({}, 0); });
    }
    [[nodiscard]] store_standing standing() const override { return of_->standing; }
    [[nodiscard]] bool in_doubt() const override { return of_->in_doubt; }

private:
    detail::event_loop& on_;
    std::shared_ptr<condition> of_;
};

class slow_driver final : public detail::store_driver {
public:
    explicit slow_driver(std::shared_ptr<condition> of) : of_(std::move(of)) {}
    std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> all{"slow"};
        return all;
    }
    detail::opened_stores open(const detail::store_url&, detail::event_loop& on, std::string_view,
                               const detail::breaker_identity&) override {
        return {std::make_unique<slow_breakers>(on, of_), nullptr};
    }

private:
    std::shared_ptr<condition> of_;
};

class HurriedAsk : public testing::Test {
protected:
    static constexpr auto long_time = 20s;

    std::error_code ask(std::chrono::milliseconds limit) {
        const detail::look_request question{"pay", {}};
        return ask_breakers_hurried<detail::glance>(
                   at_, limit, 0ms,
                   [&](detail::breaker_store& at, auto by, auto done) {
                       return at.look(question, by, std::move(done));
                   })
            .error;
    }
    bool is_quick(const auto& f) {
        const auto began = std::chrono::steady_clock::now();
        f();
        return std::chrono::steady_clock::now() - began < long_time / 2;
    }

    std::shared_ptr<condition> of_ = std::make_shared<condition>();
    store at_ = open("slow:", {driver(std::make_shared<slow_driver>(of_))}, {});
};

TEST_F(HurriedAsk, AnAnswerIsAnAnswer) {
    of_->answers = true;
    of_->standing = store_standing::refuses;  // what was asked before
    EXPECT_FALSE(ask(long_time));
}

TEST_F(HurriedAsk, ASilentStoreHasItsTime) {
    EXPECT_EQ(errc::unknown_outcome, ask(50ms));
}

TEST_F(HurriedAsk, WithoutAWayNothingWasDone) {
    of_->standing = store_standing::away;
    EXPECT_TRUE(is_quick([&] { EXPECT_EQ(errc::unavailable, ask(long_time)); }));
    EXPECT_EQ(1, of_->dropped);
}

TEST_F(HurriedAsk, WhatWasRefusedWasNotDone) {
    of_->standing = store_standing::refuses;
    EXPECT_TRUE(is_quick([&] { EXPECT_EQ(errc::unavailable, ask(long_time)); }));
}

TEST_F(HurriedAsk, WhatWasSentAndLostMayBeDone) {
    std::thread breaks([of = of_] {
        while (of->requests == 0) std::this_thread::yield();
        of->in_doubt = true;
        of->standing = store_standing::away;
    });
    EXPECT_TRUE(is_quick([&] { EXPECT_EQ(errc::unknown_outcome, ask(long_time)); }));
    breaks.join();
}

TEST_F(HurriedAsk, WhatIsUnderWayToOneThatRefusedMayBeDone) {
    of_->in_doubt = true;
    of_->standing = store_standing::refuses;
    EXPECT_TRUE(is_quick([&] { EXPECT_EQ(errc::unknown_outcome, ask(long_time)); }));
}

}  // namespace
}  // namespace trinco::program
