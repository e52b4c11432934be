#include "store/consul/consul_inquiry.hpp"

#include <array>
#include <memory>
#include <utility>

#include "store/consul/consul_fault.hpp"
#include "store/consul/consul_wire.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::array<const char*, 3> questions{"/v1/status/leader", "/v1/status/peers",
                                               "/v1/agent/self"};

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
    return decode_agent(body, to);
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
            all->calls.push_back(
                way.call(i, lane::requests, {.path = questions[q]}, by,
                         [&way, i, q, weak = std::weak_ptr(all)](const http_answer& said) {
                             const auto to = weak.lock();
                             if (!to) return;
                             auto& row = to->all[i];
                             if (!is_answer(said)) {
                                 const auto what = judge(said, way.name(i), way.tls());
                                 if (q != 2 || what.code != errc::denied) row.why = what.sentence;
                             } else if (!read(q, said.response.body, row)) {
                                 row.why = way.name(i) + ": it answers, but not as Consul does";
                             }
                             if (--to->open > 0) return;
                             auto tell = std::move(to->done);
                             tell({}, std::move(to->all));
                         }));
        }
    }
    return op([all] { all->calls.clear(); });
}

}  // namespace trinco::detail::consul
