// Being told of changes by a store, for as long as this lives.
#pragma once

#include <memory>
#include <utility>

#include "core/loop.hpp"
#include "store/open.hpp"
#include "trinco/store.hpp"

namespace trinco::program {

class listening {
public:
    // start(locks, breakers) runs on the store's thread, before anything that is asked later; it
    // listens and gives the op back whose end ends that. What it has the store call may still be
    // called for a moment after this has ended, and so owns what it uses. The store outlives this.
    template <class Start>
    listening(const store& at, Start start) : state_(*detail::store_access::state(at)) {
        // Not asked for later: a store that is being closed has given them up by then.
        auto* const locks = state_.locks();
        auto* const breakers = state_.breakers();
        state_.on().post([op = op_, locks, breakers, start = std::move(start)]() mutable {
            *op = start(locks, breakers);
        });
    }
    ~listening() {
        state_.on().post([op = op_] { op->cancel(); });
    }
    listening(const listening&) = delete;
    listening& operator=(const listening&) = delete;

private:
    detail::store_state& state_;
    const std::shared_ptr<detail::op> op_ = std::make_shared<detail::op>();  // the store's thread
};

}  // namespace trinco::program
