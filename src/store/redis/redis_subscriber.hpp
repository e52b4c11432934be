// What the one subscriber of a store on Redis hears: changes of breakers in their order, and that
// some were missed.
//
// Order        A message that says nothing newer about its breaker than one before is not told.
// Missed       One gap when the channel is heard again after an interruption, also when the store
//              answered something before the channel was heard for the first time, or may have
//              been about to: that something was under way at that moment is enough. Another server
//              is told at once (new_server), before anything that it answers.
// Not heard    Where the channel cannot be heard (no right to it, no connection) or not be written
//              to, but the server answers: a gap every 100 ms, so that the caller asks instead.
//
// The loop's thread. Whoever is told may end the subscription and the store.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/loop.hpp"
#include "store/breaker_store.hpp"
#include "store/redis/redis_route.hpp"

namespace trinco::detail {

class redis_subscriber {
public:
    // The loop outlives it.
    explicit redis_subscriber(loop& on) : on_(on) {}
    ~redis_subscriber() { end(); }
    redis_subscriber(const redis_subscriber&) = delete;
    redis_subscriber& operator=(const redis_subscriber&) = delete;

    // Ends the one before.
    [[nodiscard]] op subscribe(unique_function<void(const notice&)> heard);
    void end() noexcept;
    [[nodiscard]] bool hears() const noexcept { return hearing_; }
    // Why it does not hear what it should; empty when it does.
    [[nodiscard]] std::string trouble() const;

    // From the route.
    void changed(const route_event& e);
    void came(std::string_view message);
    // From the calls: the caller may know something now that changes unheard. To be called, too,
    // before `hearing` is told while something is under way.
    void answered() noexcept { knows_ = knows_ || !hearing_; }
    // A change of ours was told to nobody.
    void not_published();

private:
    struct listener {
        unique_function<void(const notice&)> heard;
        bool ended = false;
    };
    struct place {
        std::uint64_t era = 0;
        std::uint64_t rev = 0;
    };

    void tell(const notice& n);
    void tell_gap() { tell({notice::kind_t::gap, {}, {}}); }
    void settle_gap();
    void poll_later();
    [[nodiscard]] bool must_poll() const;

    loop& on_;
    std::shared_ptr<listener> listener_;
    std::map<std::string, place, std::less<>> told_;  // of each breaker, last
    bool up_ = false;
    bool hearing_ = false;
    bool knows_ = false;   // the caller was answered while nothing was heard
    bool missed_ = false;  // a gap is due
    bool denied_ = false;  // the right to the channel
    std::string deaf_;     // why
    deadline deaf_since_{};
    deadline mute_until_{};
    op settling_;
    op poll_;
};

}  // namespace trinco::detail
