// What once says when the store refuses a key: why, in the store's own words.
#include <gtest/gtest.h>

#include <array>
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
#include "trinco/once.hpp"
#include "trinco/store.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;

// Has no key with a segment that is a dot.
class picky_locks final : public detail::memory_locks {
public:
    explicit picky_locks(detail::loop& on)
        : memory_locks(on, std::make_shared<detail::memory_lock_server>(&detail::boot_clock::now)),
          on_(on) {}

    [[nodiscard]] detail::op read(std::string_view key, detail::deadline by,
                                  detail::completion<std::optional<detail::record>> done) override {
        if (key.find("/./") == std::string_view::npos) {
            return memory_locks::read(key, by, std::move(done));
        }
        return on_.after(0s, [done = std::move(done)]() mutable { done(errc::invalid, {}); });
    }
    [[nodiscard]] std::string trouble(const std::error_code& told) const override {
        return told == errc::invalid ? "no path can name it" : "";
    }

private:
    detail::loop& on_;
};

class picky_driver final : public detail::store_driver {
public:
    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> all{"picky"};
        return all;
    }
    [[nodiscard]] detail::opened_stores open(const detail::store_url&, detail::event_loop& on,
                                             std::string_view,
                                             const detail::breaker_identity&) override {
        return {nullptr, std::make_unique<picky_locks>(on)};
    }
};

TEST(OnceTrouble, AKeyThatTheStoreCannotHaveIsToldInItsWords) {
    const store where = open("picky:", {driver(std::make_shared<picky_driver>())});
    session on(where);
    const auto f = [](const once_run&) { return std::string("ran"); };
    EXPECT_EQ(once(on, "a/b", f).value, "ran");
    try {
        static_cast<void>(once(on, "a/./b", f));
        FAIL() << "nothing was thrown";
    } catch (const lock_error& e) {
        EXPECT_EQ(e.code(), errc::invalid);
        EXPECT_STREQ(e.what(), "trinco: once \"a/./b\": no path can name it");
    }
}

}  // namespace
}  // namespace trinco::test
