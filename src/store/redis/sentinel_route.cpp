#include "store/redis/sentinel_route.hpp"

#include <optional>
#include <utility>

#include "core/mutant.hpp"
#include "store/redis/sentinel_jury.hpp"
#include "store/redis/sentinel_seeker.hpp"
#include "store/redis/sentinel_watch.hpp"
#include "store/redis/server_life.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using event_kind = route_event::kind_t;

// A peer that is gone shows within this and a second.
constexpr auto ping_after = 5s;
constexpr auto check_within = 1s;
// Sentinels tell each other of a fail-over within two seconds.
constexpr auto check_again_after = 3s;
// A fail-over that takes longer than that is none, or fails.
constexpr auto longest_doubt = 10s;

class sentinel_route final : public redis_route {
public:
    sentinel_route(loop& on, stream_factory& streams, redis_target target, on_event changed)
        : on_(on),
          streams_(streams),
          target_(std::move(target)),
          changed_(std::move(changed)),
          for_commands_(on, streams, target_),
          for_hearing_(on, streams, target_),
          for_check_(on, streams, target_),
          jury_(on, streams, target_) {
        auto options = greeting();
        options.steps.push_back(life_step([this](std::string run_id) {
            is_unknown_ = run_id.empty();
            if (!life_.is_another(std::move(run_id))) return;
            is_another_ = true;
            doubted_since_.reset();  // doubts of the one before say nothing of this one
        }));
        options.find = [this](deadline by, sentinel_seeker::on_found done) {
            if (announced_) return tell_later(*std::exchange(announced_, {}), std::move(done));
            return for_commands_.find(by, std::move(done));
        };
        options.doubted = [this] { return is_doubted(); };
        options.admit = [this](deadline by, auto done) { return admit(by, std::move(done)); };
        commands_.emplace(on_, streams_, target_.nodes.front(), std::move(options),
                          [this](const redis_link_event& e) { commands_changed(e); });
        watch_.emplace(
            on_, streams_, target_, [this](stream_address to) { switched(std::move(to)); },
            [this] { check(); });
    }

    op request(std::string_view, std::string command, deadline by,
               completion<resp_reply> done) override {
        return commands_->request(std::move(command), by, std::move(done));
    }

    void mistrust(std::string_view, redis_refusal why) override {
        if (commands_->up()) commands_->reconnect(std::move(why));
    }

    void listen(std::string channel, on_message heard, may_wait wait) override {
        auto options = greeting();
        options.may_wait = std::move(wait);
        options.steps.push_back({{"SUBSCRIBE", std::move(channel)}});
        options.find = [this](deadline by, sentinel_seeker::on_found done) {
            if (commands_->up()) return tell_later(commands_->where(), std::move(done));
            return for_hearing_.find(by, std::move(done));
        };
        heard_ = std::move(heard);
        hearing_.emplace(
            on_, streams_, target_.nodes.front(), std::move(options),
            [this](const redis_link_event& e) { hearing_changed(e); },
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
        if (!TRINCO_MUTANT("sentinel_takes_any_role")) options.steps.push_back(primary_step());
        options.ping_after = ping_after;
        return options;
    }

    [[nodiscard]] op tell_later(stream_address where, sentinel_seeker::on_found done) {
        return on_.at(on_.now(),
                      [d = std::move(done), w = std::move(where)]() mutable { d(std::move(w)); });
    }

    // Whether the server that answers was restarted since it was followed, as far as we can know.
    [[nodiscard]] bool is_doubted() {
        if (followed_ != commands_->where() || !(is_another_ || is_unknown_)) return false;
        if (!doubted_since_) doubted_since_ = on_.now();
        return on_.now() - *doubted_since_ < longest_doubt &&
               !TRINCO_MUTANT("sentinel_takes_it_back_at_once");
    }

    [[nodiscard]] op admit(deadline by, unique_function<void(std::optional<redis_refusal>)> done) {
        return jury_.ask(
            by, [this, d = std::move(done)](const std::vector<sentinel_word>& words) mutable {
                auto verdict = judge_return(words, commands_->where());
                if (verdict.elsewhere) announced_ = std::move(verdict.elsewhere);
                d(std::move(verdict.refusal));
            });
    }

    void commands_changed(const redis_link_event& e) {
        if (e.up) {
            followed_ = commands_->where();
            doubted_since_.reset();
            for_commands_.confirm();
            follow();
        }
        const bool another = e.up && std::exchange(is_another_, false);
        const auto alive = std::weak_ptr(alive_);
        changed_({e.up ? event_kind::up : event_kind::down, e.reason});
        if (another && !alive.expired()) changed_({event_kind::other_server, {}});
    }

    void hearing_changed(const redis_link_event& e) {
        if (e.up) for_hearing_.confirm();
        // It may have been on its way to another server when the commands came up.
        if (e.up && commands_->up()) follow();
        changed_({e.up ? event_kind::hearing : event_kind::deaf, e.reason});
        // Nothing after it: the route may be gone.
    }

    // The channel is heard where the commands go.
    void follow() {
        if (!hearing_ || !hearing_->up() || hearing_->where() == commands_->where()) return;
        hearing_->reconnect({errc::unavailable, "another server has become the primary"});
        hearing_->wake();
    }

    void switched(stream_address to) {
        if (commands_->up() && commands_->where() == to) return;
        announced_ = std::move(to);
        commands_->reconnect({errc::unavailable, "another server has become the primary"});
        commands_->wake();
    }

    // `first` has been named already, by a Sentinel that is now asked last.
    void check(std::optional<stream_address> first = {}) {
        check_later_.cancel();
        checking_ = for_check_.find(
            on_.now() + check_within,
            [this, first = std::move(first)](const redis_found& found) { checked(first, found); });
    }

    // One that was cut off from the others, or has not heard of it yet, may name a primary of the
    // past: a working connection is given up, and kept, for the word of two only, or of the only
    // one that answers.
    void checked(const std::optional<stream_address>& first, const redis_found& found) {
        if (!commands_->up()) return;  // coming up, they ask themselves
        const auto* const named = std::get_if<stream_address>(&found);
        if (!first) {
            if (named != nullptr) check(*named);
            return;
        }
        if (named == nullptr || *named == *first) {
            for_check_.confirm();
            return switched(*first);
        }
        check_later_ = on_.after(check_again_after, [this] { check(); });
    }

    loop& on_;
    stream_factory& streams_;
    const redis_target target_;
    on_event changed_;
    on_message heard_;
    server_life life_;
    bool is_another_ = false;                  // of the connection that is being made
    bool is_unknown_ = false;                  // its run id
    std::optional<stream_address> announced_;  // and not connected to yet
    std::optional<stream_address> followed_;   // the last one that was up
    std::optional<deadline> doubted_since_;    // it is back there
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
    sentinel_seeker for_commands_;
    sentinel_seeker for_hearing_;
    sentinel_seeker for_check_;
    sentinel_jury jury_;
    std::optional<redis_link> commands_;
    std::optional<redis_link> hearing_;
    std::optional<sentinel_watch> watch_;
    op checking_;
    op check_later_;
};

}  // namespace

std::unique_ptr<redis_route> make_sentinel_route(loop& on, stream_factory& streams,
                                                 redis_target target,
                                                 redis_route::on_event changed) {
    return std::make_unique<sentinel_route>(on, streams, std::move(target), std::move(changed));
}

}  // namespace trinco::detail
