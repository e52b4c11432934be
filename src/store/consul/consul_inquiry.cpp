#include "store/consul/consul_inquiry.hpp"

#include <array>
#include <memory>
#include <utility>

#include "store/consul/consul_fault.hpp"
#include "store/consul/consul_wire.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::array<const char*, 4> questions{"/v1/status/leader", "/v1/status/peers",
                                               "/v1/agent/self", "/v1/operator/autopilot/health"};
constexpr std::size_t of_the_agent = 2;
constexpr std::size_t of_health = 3;
constexpr unsigned unwell = 429;  // the status with which health is told that is none

// What each says of itself, gathered.
struct inquiry {
    std::vector<server_status> all;
    std::vector<op> calls;
    std::size_t open = 0;
    completion<std::vector<server_status>> done;
};

bool read(std::size_t question, const std::string& body, server_status& to) {
    if (question == 0) {
        auto leader = decode_text(body);
        if (leader) to.leader = std::move(*leader);
        return leader.has_value();
    }
    if (question == 1) {
        auto peers = decode_texts(body);
        if (peers) to.peers = std::move(*peers);
        return peers.has_value();
    }
    return question == of_the_agent ? decode_agent(body, to) : decode_health(body, to);
}

// What only those with a right to it are told, or only versions that know of it.
bool may_stay_untold(std::size_t question, std::error_code why) {
    return question == of_health || (question == of_the_agent && why == errc::denied);
}

// What an address has answered to a question.
void take(std::size_t question, const http_answer& said, const std::string& name,
          const std::optional<tls_settings>& tls, server_status& to) {
    const bool tells =
        is_answer(said) || (question == of_health && !said.error && said.response.status == unwell);
    if (!tells) {
        const auto what = judge(said, name, tls);
        if (!may_stay_untold(question, what.code)) to.why = what.sentence;
    } else if (!read(question, said.response.body, to) && question != of_health) {
        to.why = name + ": it answers, but not as Consul does";
    }
}

}  // namespace

op inquire(consul_way& way, deadline by, completion<std::vector<server_status>> done) {
    const auto all = std::make_shared<inquiry>();
    all->done = std::move(done);
    all->all.resize(way.size());
    all->open = way.size() * questions.size();
    // Without a token all that it guards is told to nobody; the rest is.
    (void)way.token().is_ready();
    for (std::size_t i = 0; i < way.size(); ++i) {
        all->all[i].address = way.name(i);
        for (std::size_t q = 0; q < questions.size(); ++q) {
            const auto answered = [&way, i, q, weak = std::weak_ptr(all)](const http_answer& said) {
                const auto to = weak.lock();
                if (!to) return;
                take(q, said, way.name(i), way.tls(), to->all[i]);
                if (--to->open > 0) return;
                auto tell = std::move(to->done);
                tell({}, std::move(to->all));
            };
            all->calls.push_back(way.call(i, lane::requests, {.path = questions[q]}, by, answered));
        }
    }
    return op([all] { all->calls.clear(); });
}

}  // namespace trinco::detail::consul
