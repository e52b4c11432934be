#include "apps/trinco/doctor/examine_consul.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/doctor/consul_facts.hpp"
#include "apps/trinco/doctor/consul_rights.hpp"
#include "apps/trinco/doctor/tls_words.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/servers/consul_talk.hpp"
#include "store/consul/consul_environment.hpp"
#include "store/consul/consul_layout.hpp"
#include "store/consul/consul_url.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using trinco::detail::consul_target;
namespace consul = trinco::detail::consul;

constexpr auto patience = 3s;

void check_tls(const consul_target& target, examination& to) {
    const auto& way = target.way;
    std::optional<secret_on_the_way> secret;
    if (!way.token.empty() || !way.token_file.empty()) {
        secret.emplace("the token travels",
                       "give the agents a certificate, and use consuls://; or ask the agent of "
                       "this machine");
    }
    judge_tls(way.tls, way.addresses, secret, to);
}

// The node where sessions are made, if it is one alone.
std::string node_of(const std::vector<consul_status>& asked) {
    std::string node;
    for (const consul_status& one : asked) {
        if (one.node.empty() || (!node.empty() && node != one.node)) return {};
        node = one.node;
    }
    return node;
}

void examine(consul_talk& with, const consul_target& target, const settings& how, examination& to) {
    const auto asked = with.ask<std::vector<consul_status>>(
        patience,
        [](consul::rpc& link, auto by, auto done) { return link.status(by, std::move(done)); });
    judge_consul_reach(asked.value, to);
    if (to.worst() == level::bad) {
        // What the commands would be told.
        const auto read =
            with.ask<consul::read_reply>(patience, [](consul::rpc& link, auto by, auto done) {
                return link.read({"trinco-doctor", false, true}, by, std::move(done));
            });
        if (read.error) to.code = exit_code_of(read.error);
        return;
    }
    check_tls(target, to);
    judge_consul_leader(asked.value, to);
    judge_servers(asked.value, to);
    judge_datacenter(asked.value, target.way.datacenter, to);
    judge_consul_version(asked.value, to);
    judge_agents(asked.value, to);
    judge_connections(asked.value, to);
    if (to.worst() == level::bad) return;
    const auto least = try_consul_locks(with, {target, how.prefix, node_of(asked.value)}, to);
    if (!least || to.worst() == level::bad) return;
    judge_session_ttl(*least, how.ttl, to);
    judge_lock_delay(to);
    judge_consul_outage(asked.value, *least, to);
    to.good("tokens",
            "those of locks are indexes of the store, with token_epoch=" +
                std::to_string(target.token_epoch) +
                "; indexes go back when a snapshot is restored: raise token_epoch in the URL then");
}

}  // namespace

void examine_consul(const settings& with, examination& to) {
    auto parsed = trinco::detail::parse_consul_url(with.locks_url);
    auto* const target = std::get_if<consul_target>(&parsed);
    auto wrong = target == nullptr ? std::get<std::string>(parsed)
                                   : consul::take_token_of_environment(target->way);
    if (wrong) {
        to.code = exit_usage;
        return to.bad("url", std::move(*wrong), "'trinco help urls' shows how they are written");
    }
    if (const auto bad = consul::check_consul_name(with.prefix + "trinco-doctor")) {
        to.code = exit_usage;
        return to.bad("prefix", *bad, "name another --prefix");
    }
    consul_talk talk(target->way);
    examine(talk, *target, with, to);
}

}  // namespace trinco::program::doctor
