#include "store/redis/single_route.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "store/redis/server_life.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using event_kind = route_event::kind_t;

// A peer that is gone shows within this and a second.
constexpr auto ping_after = 5s;

// How soon a connection to a server that is of no use may be given up again; twice as much each
// time, until there was nothing to complain about for a while.
constexpr auto doubt_first = 50ms;
constexpr auto doubt_longest = 1'000ms;
constexpr auto doubt_forgotten = 10s;

class single_route final : public redis_route {
public:
    single_route(loop& on, stream_factory& streams, redis_target target, on_event changed)
        : on_(on),
          streams_(streams),
          target_(std::move(target)),
          to_(target_.nodes.front()),
          changed_(std::move(changed)) {
        to_.tls = target_.tls;
        auto options = greeting();
        options.steps.push_back(life_step(
            [this](std::string run_id) { is_another_ = life_.is_another(std::move(run_id)); }));
        commands_.emplace(on_, streams_, to_, std::move(options),
                          [this](const redis_link_event& e) { commands_changed(e); });
    }

    op request(std::string_view, std::string command, deadline by,
               completion<resp_reply> done) override {
        return commands_->request(std::move(command), by, std::move(done));
    }

    void mistrust(std::string_view, redis_refusal why) override {
        // A request that is tried again wakes the link, whose own waits therefore hold nobody back.
        const auto now = on_.now();
        if (!commands_->up() || why.only_time_helps || now < trusted_until_) return;
        doubt_ = now < trusted_until_ + doubt_forgotten ? std::min(doubt_ * 2, doubt_longest)
                                                        : doubt_first;
        trusted_until_ = now + doubt_;
        commands_->reconnect(std::move(why));
    }

    void listen(std::string channel, on_message heard, may_wait wait) override {
        auto options = greeting();
        options.may_wait = std::move(wait);
        options.steps.push_back({{"SUBSCRIBE", std::move(channel)}});
        heard_ = std::move(heard);
        hearing_.emplace(
            on_, streams_, to_, std::move(options),
            [this](const redis_link_event& e) {
                changed_({e.up ? event_kind::hearing : event_kind::deaf, e.reason});
            },
            [this](const resp_reply& message) {
                if (message.elements.size() == 3) heard_(message.elements[2].text);
            });
    }

    bool up(std::string_view) const noexcept override { return commands_->up(); }
    bool awaits() const noexcept override { return commands_->awaits(); }

    route_traffic traffic() const noexcept override {
        route_traffic all;
        for (const auto* link : {&commands_, &hearing_}) {
            if (*link) all += (*link)->traffic();
        }
        return all;
    }

private:
    [[nodiscard]] redis_link_options greeting() const {
        redis_link_options options;
        options.steps = login_steps(target_.login, target_.database);
        options.steps.push_back(name_step());
        options.ping_after = ping_after;
        return options;
    }

    void commands_changed(const redis_link_event& e) {
        const bool another = e.up && std::exchange(is_another_, false);
        const auto alive = std::weak_ptr(alive_);
        changed_({e.up ? event_kind::up : event_kind::down, e.reason});
        if (another && !alive.expired()) changed_({event_kind::other_server, {}});
    }

    loop& on_;
    stream_factory& streams_;
    const redis_target target_;
    stream_address to_;
    on_event changed_;
    on_message heard_;
    server_life life_;
    bool is_another_ = false;  // of the connection that is being made
    std::chrono::milliseconds doubt_ = doubt_first;
    deadline trusted_until_{};
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
    std::optional<redis_link> commands_;
    std::optional<redis_link> hearing_;
};

}  // namespace

std::unique_ptr<redis_route> make_single_route(loop& on, stream_factory& streams,
                                               redis_target target, redis_route::on_event changed) {
    return std::make_unique<single_route>(on, streams, std::move(target), std::move(changed));
}

}  // namespace trinco::detail
