// What is said when the store fails: why, in its own words, and what may have happened.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "store/driver.hpp"
#include "store/memory/memory_lock_server.hpp"
#include "store/memory/memory_locks.hpp"
#include "trinco/guarded_write.hpp"
#include "trinco/mutex.hpp"
#include "trinco/store.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;

// What the store answers instead of doing what it is asked for; 0: it does it.
struct symptoms {
    std::atomic<int> of_enter = 0;
    std::atomic<int> of_write = 0;
    std::atomic<int> of_read = 0;
};

class sick_locks final : public detail::memory_locks {
public:
    sick_locks(detail::loop& on, std::shared_ptr<symptoms> has)
        : memory_locks(on, std::make_shared<detail::memory_lock_server>(&detail::boot_clock::now)),
          on_(on),
          has_(std::move(has)) {}

    [[nodiscard]] detail::op enter(detail::claim what, detail::deadline by,
                                   detail::completion<detail::place> done) override {
        if (has_->of_enter != 0) return answer(has_->of_enter, std::move(done));
        return memory_locks::enter(std::move(what), by, std::move(done));
    }
    [[nodiscard]] detail::op write(std::string_view lease, std::optional<detail::claim_id> guard,
                                   std::span<const detail::change> changes,
                                   std::chrono::seconds keep, detail::deadline by,
                                   detail::completion<std::uint64_t> done) override {
        if (has_->of_write != 0) return answer(has_->of_write, std::move(done));
        return memory_locks::write(lease, guard, changes, keep, by, std::move(done));
    }
    [[nodiscard]] detail::op read(std::string_view key, detail::deadline by,
                                  detail::completion<std::optional<detail::record>> done) override {
        if (has_->of_read != 0) return answer(has_->of_read, std::move(done));
        return memory_locks::read(key, by, std::move(done));
    }
    [[nodiscard]] std::string trouble(const std::error_code& told) const override {
        const bool away = told == errc::unavailable || told == errc::unknown_outcome;
        return away ? "m0: the cable is out" : "";
    }

private:
    template <class T>
    detail::op answer(int code, detail::completion<T> done) {
        return on_.after(
            0s, [code, done = std::move(done)]() mutable { done(static_cast<errc>(code), T{}); });
    }
    detail::loop& on_;
    const std::shared_ptr<symptoms> has_;
};

class sick_driver final : public detail::store_driver {
public:
    explicit sick_driver(std::shared_ptr<symptoms> has) : has_(std::move(has)) {}
    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> all{"sick"};
        return all;
    }
    [[nodiscard]] detail::opened_stores open(const detail::store_url&, detail::event_loop& on,
                                             std::string_view,
                                             const detail::breaker_identity&) override {
        return {nullptr, std::make_unique<sick_locks>(on, has_)};
    }

private:
    const std::shared_ptr<symptoms> has_;
};

class StoreTrouble : public ::testing::Test {
protected:
    template <class F>
    static std::string sentence(F f, errc expected) {
        try {
            f();
        } catch (const lock_error& e) {
            EXPECT_EQ(e.code(), expected) << e.what();
            return e.what();
        }
        ADD_FAILURE() << "nothing was thrown";
        return {};
    }
    static bool says(const std::string& text, const char* words) {
        return text.find(words) != std::string::npos;
    }

    const std::shared_ptr<symptoms> has_ = std::make_shared<symptoms>();
    store where_ = open("sick:", {driver(std::make_shared<sick_driver>(has_))});
    session on_{where_};
    mutex lock_{on_, "n"};
};

TEST_F(StoreTrouble, AGuardedWriteSaysWhyTheStoreCannotBeReached) {
    lock_.lock();
    guarded_write w(lock_);
    w.put("k:1", "x");
    for (const auto code : {errc::unavailable, errc::unknown_outcome}) {
        has_->of_write = static_cast<int>(code);
        const auto said = sentence([&] { w.commit(); }, code);
        EXPECT_TRUE(says(said, "mutex 'n'")) << said;
        EXPECT_TRUE(says(said, "the cable is out")) << said;
    }
    has_->of_read = static_cast<int>(errc::unavailable);
    const auto said =
        sentence([&] { static_cast<void>(read_guarded(on_, "k:1")); }, errc::unavailable);
    EXPECT_TRUE(says(said, "the cable is out")) << said;
}

TEST_F(StoreTrouble, WhatFailedForAnotherReasonIsNotSaidToBeOfTheStore) {
    has_->of_enter = static_cast<int>(errc::invalid);
    const auto said = sentence([&] { static_cast<void>(lock_.try_lock()); }, errc::invalid);
    EXPECT_TRUE(says(said, make_error_code(errc::invalid).message().c_str())) << said;
    has_->of_enter = static_cast<int>(errc::unavailable);
    const auto away = sentence([&] { static_cast<void>(lock_.try_lock()); }, errc::unavailable);
    EXPECT_TRUE(says(away, "the cable is out")) << away;
}

TEST_F(StoreTrouble, AfterACommitWithoutAnswerNothingIsSaidToBeUnchanged) {
    lock_.lock();
    guarded_write w(lock_);
    w.put("k:1", "x");
    has_->of_write = static_cast<int>(errc::unknown_outcome);
    sentence([&] { w.commit(); }, errc::unknown_outcome);
    has_->of_write = static_cast<int>(errc::conflict);
    auto said = sentence([&] { w.commit(); }, errc::conflict);
    EXPECT_FALSE(says(said, "nothing was changed")) << said;
    EXPECT_TRUE(says(said, "may have changed")) << said;
    has_->of_write = static_cast<int>(errc::lost);
    said = sentence([&] { w.commit(); }, errc::lost);
    EXPECT_FALSE(says(said, "nothing was changed")) << said;
    has_->of_write = 0;
    said = sentence([&] { w.commit(); }, errc::lost);
    EXPECT_FALSE(says(said, "nothing was changed")) << said;
}

TEST_F(StoreTrouble, WhatWasAcknowledgedSinceIsInDoubtNoMore) {
    lock_.lock();
    guarded_write w(lock_);
    w.put("k:1", "x");
    has_->of_write = static_cast<int>(errc::unknown_outcome);
    sentence([&] { w.commit(); }, errc::unknown_outcome);
    has_->of_write = 0;
    w.commit();
    lock_.unlock();
    const auto said = sentence([&] { w.commit(); }, errc::lost);
    EXPECT_TRUE(says(said, "nothing was changed")) << said;
}

}  // namespace
}  // namespace trinco::test
