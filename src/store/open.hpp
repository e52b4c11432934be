// The inside of a trinco::store, for registries of breakers and sessions of locks.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "core/breaker/messages.hpp"
#include "net/event_loop.hpp"
#include "store/driver.hpp"
#include "trinco/store.hpp"

namespace trinco::detail {

// An open store. Shared by the handle and by what is made from it; the last owner closes it, on any
// thread, within the close timeout. Immutable while it lives, so reading it needs no lock; the
// stores themselves are called on the loop's thread only.
class store_state {
public:
    struct parts {
        std::shared_ptr<event_loop> on;
        opened_stores stores;
        breaker_identity who;
        std::string name_space;
        std::string url;  // as shown
        std::chrono::milliseconds close_timeout{0};
    };
    explicit store_state(parts what) noexcept : parts_(std::move(what)) {}
    // Anything that uses the stores must be gone by then.
    ~store_state();
    store_state(const store_state&) = delete;
    store_state& operator=(const store_state&) = delete;

    [[nodiscard]] event_loop& on() const noexcept { return *parts_.on; }
    [[nodiscard]] breaker_store* breakers() const noexcept { return parts_.stores.breakers.get(); }
    [[nodiscard]] lock_store* locks() const noexcept { return parts_.stores.locks.get(); }
    [[nodiscard]] const breaker_identity& who() const noexcept { return parts_.who; }
    [[nodiscard]] const std::string& name_space() const noexcept { return parts_.name_space; }
    [[nodiscard]] const std::string& url() const noexcept { return parts_.url; }
    // Why it cannot be used: forked (made in the parent process); no error otherwise.
    [[nodiscard]] std::error_code check() const noexcept { return parts_.on->check(); }

private:
    parts parts_;
};

// As trinco::open, but the loop of the store has no thread yet: the caller's is it (run_here),
// until on().start(). For a program that needs the store for a moment.
[[nodiscard]] store open_without_thread(std::string_view url, std::span<const driver> drivers,
                                        const store_settings& settings);

struct store_access {
    // Null when the handle is empty. Keep it as long as anything uses what is in it.
    [[nodiscard]] static std::shared_ptr<store_state> state(const store& s) noexcept {
        return s.state_;
    }
    [[nodiscard]] static store wrap(std::shared_ptr<store_state> state) noexcept {
        return store(std::move(state));
    }
    [[nodiscard]] static std::shared_ptr<store_driver> driver_of(const driver& d) noexcept {
        return d.what_;
    }
};

}  // namespace trinco::detail
