#include "apps/trinco/breakers/pulse.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "apps/trinco/stores/breaker_trouble.hpp"
#include "core/breaker/messages.hpp"
#include "net/event_loop.hpp"
#include "store/breaker_store.hpp"
#include "store/open.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto every = 2s;
constexpr auto every_without_answer = 1s;
constexpr auto patience = 1s;

}  // namespace

// Shared with the store's thread, which may answer when nobody asks any more.
struct pulse::state {
    detail::event_loop* on = nullptr;
    detail::breaker_store* breakers = nullptr;
    std::shared_ptr<bell> door;
    detail::op asking;  // the store's thread only

    std::mutex m;
    std::optional<beat> came;  // guarded, and so are the next
    bool is_waiting = false;
    bool was_well = true;

    void put(beat b) {
        {
            const std::lock_guard hold(m);
            is_waiting = false;
            was_well = b.is_well;
            came = std::move(b);
        }
        door->ring();
    }
};

pulse::pulse(const store& at, std::shared_ptr<bell> door)
    : state_(std::make_shared<state>()), next_(clock::now() + every) {
    const auto inside = detail::store_access::state(at);
    state_->on = &inside->on();
    state_->breakers = inside->breakers();
    state_->door = std::move(door);
}

pulse::~pulse() {
    state_->on->post([s = state_] { s->asking.cancel(); });
}

std::chrono::milliseconds pulse::ask(bool now) {
    const auto time = clock::now();
    {
        const std::lock_guard hold(state_->m);
        // The answer rings.
        if (state_->is_waiting) return every;
        if (!now && time < next_) return std::chrono::ceil<std::chrono::milliseconds>(next_ - time);
        state_->is_waiting = true;
        next_ = time + (state_->was_well ? std::chrono::seconds(every) : every_without_answer);
    }
    state_->on->post([s = state_, asked = std::chrono::system_clock::now()] {
        s->asking = s->breakers->inspect(
            "", "", 1, s->on->now() + patience,
            [s, asked](std::error_code error, const detail::page& all) {
                const auto over = std::move(s->asking);
                s->put({!error, error ? reason_text(error, s->breakers->trouble()) : "", asked,
                        !error && all.rows.empty()});
            });
    });
    return every;
}

std::optional<pulse::beat> pulse::take() {
    const std::lock_guard hold(state_->m);
    return std::exchange(state_->came, std::nullopt);
}

}  // namespace trinco::program
