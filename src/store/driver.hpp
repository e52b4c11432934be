// What a driver does for trinco::open: it makes the stores of its schemes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/breaker/messages.hpp"
#include "net/event_loop.hpp"
#include "store/breaker_store.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail {

// A URL in two parts. Its text is shown in errors, and so has no password.
struct store_url {
    std::string scheme;  // "redis", lower case
    std::string rest;    // what follows the colon, with the password
    std::string shown;   // the whole, with *** in place of the password
};

// Which of the two contracts a driver's stores offer.
struct opened_stores {
    std::unique_ptr<breaker_store> breakers;
    std::unique_ptr<lock_store> locks;
};

class store_driver {
public:
    virtual ~store_driver() = default;

    // Lower case, without the colon; they live as long as the driver.
    [[nodiscard]] virtual std::span<const std::string_view> schemes() const noexcept = 0;
    // On the thread of the loop, which is the store's own and runs until the store is gone. Must
    // not wait: a connection is made in the background. Throws open_error, also for a URL that it
    // does not understand.
    [[nodiscard]] virtual opened_stores open(const store_url& url, event_loop& on,
                                             std::string_view name_space,
                                             const breaker_identity& who) = 0;
};

}  // namespace trinco::detail
