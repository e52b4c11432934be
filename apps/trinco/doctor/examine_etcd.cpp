#include "apps/trinco/doctor/examine_etcd.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/doctor/etcd_facts.hpp"
#include "apps/trinco/doctor/etcd_rights.hpp"
#include "apps/trinco/doctor/tls_words.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/problem.hpp"
#include "apps/trinco/servers/etcd_talk.hpp"
#include "core/quoted.hpp"
#include "store/etcd/etcd_url.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using trinco::detail::etcd_target;
namespace etcd = trinco::detail::etcd;

constexpr auto patience = 3s;

etcd_told<std::vector<etcd_member>> ask_members(etcd_talk& with) {
    return with.ask<std::vector<etcd_member>>(patience, [](etcd::rpc& link, auto by, auto done) {
        return link.members(by, std::move(done));
    });
}

// Whom each of those that have answered lists; asked for one by one when there are several.
std::vector<std::vector<etcd_member>> ask_each(const etcd_target& target,
                                               const std::vector<etcd_status>& asked,
                                               const std::vector<etcd_member>& all) {
    if (asked.size() < 2 || all.empty()) return {all};
    std::vector<std::vector<etcd_member>> told(asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i) {
        if (!has_answered(asked[i]) || asked[i].leader == 0) continue;  // it would not answer
        etcd_target alone = target;
        alone.members = {target.members.at(i)};
        etcd_talk with(std::move(alone));
        told[i] = ask_members(with).value;
    }
    return told;
}

void check_tls(const etcd_target& target, examination& to) {
    std::optional<secret_on_the_way> secret;
    if (!target.user.empty()) {
        secret.emplace("the password and the token that it is exchanged for travel",
                       "give etcd a certificate, and use etcds://");
    }
    judge_tls(target.tls, target.members, secret, to);
}

// False: it was said why nothing more can be asked.
bool check_login(etcd_talk& with, const etcd_target& target, const std::error_code& error,
                 examination& to) {
    if (!error) {
        if (!target.user.empty()) {
            to.good("login",
                    "as " + trinco::detail::quoted(target.user) + ", where etcd asks who one is");
        }
        return true;
    }
    to.code = exit_code_of(error);
    const auto trouble = with.trouble();
    const std::string why = trouble.empty() ? error.message() : trouble;
    if (error == errc::denied && !target.user.empty()) {
        to.bad("login", "etcd does not let " + trinco::detail::quoted(target.user) + " in: " + why,
               "correct user and password in the URL; what has a meaning there is written with "
               "percent signs (%40 for @)");
    } else if (to.worst() != level::bad) {
        // Without a majority nobody lists them, which was said.
        to.bad("members", "the members cannot be asked for: " + why,
               "look at the log of etcd, and at its connections");
    }
    return false;
}

void examine(etcd_talk& with, const etcd_target& target, const settings& how, examination& to) {
    const auto asked = with.ask<std::vector<etcd_status>>(
        patience,
        [](etcd::rpc& link, auto by, auto done) { return link.status(by, std::move(done)); });
    judge_reach(asked.value, to);
    if (to.worst() == level::bad) {
        // What the commands would be told.
        const auto error = ask_members(with).error;
        if (error) to.code = exit_code_of(error);
        return;
    }
    check_tls(target, to);
    const auto members = ask_members(with);
    judge_leader(asked.value, members.value, to);
    judge_members(asked.value, ask_each(target, asked.value, members.value), to);
    judge_etcd_version(asked.value, members.value, to);
    judge_space(asked.value, to);
    if (!check_login(with, target, members.error, to) || to.worst() == level::bad) return;
    const auto least = try_locks(with, {target, how.prefix}, to);
    if (!least || to.worst() == level::bad) return;
    judge_least_ttl(*least, how.ttl, to);
    judge_outage(*least, to);
    to.good(
        "tokens",
        "they are revisions of the store, with token_epoch=" + std::to_string(target.token_epoch) +
            "; revisions go back when a snapshot is restored or the cluster is made anew: raise "
            "token_epoch in the URL then");
}

}  // namespace

void examine_etcd(const settings& with, examination& to) {
    auto parsed = trinco::detail::parse_etcd_url(with.locks_url);
    if (const auto* const why = std::get_if<std::string>(&parsed)) {
        to.code = exit_usage;
        return to.bad("url", *why, "'trinco help urls' shows how they are written");
    }
    const auto& target = std::get<etcd_target>(parsed);
    etcd_talk talk(target);
    examine(talk, target, with, to);
}

}  // namespace trinco::program::doctor
