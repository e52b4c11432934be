#include "store/redis/sentinel_watch.hpp"

#include <array>
#include <utility>

#include "store/redis/sentinel_seeker.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto channel = "+switch-master";
constexpr auto ping_after = 2s;

}  // namespace

std::optional<stream_address> switched_to(std::string_view message, const std::string& name) {
    std::array<std::string, 5> words;
    for (auto& word : words) {
        const auto end = std::min(message.find(' '), message.size());
        word = message.substr(0, end);
        message.remove_prefix(std::min(end + 1, message.size()));
    }
    if (!message.empty() || words[0] != name) return {};
    return primary_in(resp_reply::of(
        std::vector<resp_reply>{resp_reply::of(words[3]), resp_reply::of(words[4])}));
}

sentinel_watch::sentinel_watch(loop& on, stream_factory& streams, const redis_target& target,
                               unique_function<void(stream_address)> switched,
                               unique_function<void()> check)
    : target_(target), switched_(std::move(switched)), next_(on.random() % target.nodes.size()) {
    redis_link_options options;
    options.steps = login_steps(target.sentinel_login, 0);
    options.steps.push_back({{"SUBSCRIBE", channel}});
    options.ping_after = ping_after;
    options.find = [this, &on](deadline, unique_function<void(redis_found)> done) {
        auto to = target_.nodes[next_++ % target_.nodes.size()];
        to.tls = target_.tls;
        return on.at(on.now(), [d = std::move(done), to = std::move(to)]() mutable { d(to); });
    };
    link_.emplace(
        on, streams, target.nodes.front(), std::move(options),
        [c = std::move(check)](const redis_link_event& e) mutable {
            if (e.up) c();
        },
        [this](const resp_reply& message) { came(message); });
}

void sentinel_watch::came(const resp_reply& message) {
    if (message.elements.size() != 3) return;
    auto to = switched_to(message.elements[2].text, target_.primary);
    if (!to) return;
    to->tls = target_.tls;
    switched_(std::move(*to));
}

}  // namespace trinco::detail
