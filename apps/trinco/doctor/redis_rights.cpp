#include "apps/trinco/doctor/redis_rights.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "core/quoted.hpp"
#include "store/redis/script_protocol.hpp"

namespace trinco::program::doctor {
namespace {

using words = std::vector<std::string>;
using trinco::detail::resp_reply;

// Every command that breakers use, by themselves and in scripts, as one call each. None of them
// changes anything, on keys that are nobody's: what would write is refused for its arguments, which
// a server looks at after the rights.
std::vector<words> calls_for(std::string_view name_space, server_kind of) {
    std::random_device bits;
    const auto keys = trinco::detail::breaker_keys(
        name_space, "trinco-doctor-" + std::to_string(bits()) + "-" + std::to_string(bits()));
    const std::string& record = keys[0];
    const std::string& instances = keys[2];
    const std::string index = trinco::detail::breaker_index_key(name_space);
    std::vector<words> all = {{"EVAL", "return 1", "1", record},
                              {"EVALSHA", std::string(40, '0'), "1", record},
                              {"TIME"},
                              {"HMGET", record, "f"},
                              {"HGET", record, "f"},
                              {"HGETALL", keys[1]},
                              {"HSET", record, "f", "v", "f"},
                              {"HDEL", record, "f"},
                              {"DEL", keys[1], instances},
                              {"PEXPIRE", record, "1000"},
                              {"PTTL", record},
                              {"ZADD", instances, "none", "m"},
                              {"ZREM", instances, "m"},
                              {"ZCARD", instances},
                              {"ZCOUNT", instances, "0", "1"},
                              {"ZRANGE", instances, "0", "0"},
                              {"ZRANGEBYSCORE", instances, "0", "1"},
                              {"ZREVRANGEBYSCORE", instances, "1", "0"},
                              {"ZRANGEBYLEX", index, "-", "+"}};
    if (of == server_kind::node) {
        all.push_back({"CLUSTER", "SLOTS"});
        all.push_back({"ASKING"});  // while a slot moves
    }
    return all;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

// As a rule names it: "hset", "cluster|slots".
std::string right_to(const words& call) {
    const bool is_part = call.front() == "CLUSTER";
    return lower(is_part ? call[0] + "|" + call[1] : call[0]);
}

// Nothing: the server does not say.
std::optional<bool> may(server_talk& asking, const std::string& user, const words& call) {
    words question = {"ACL", "DRYRUN", user};
    question.insert(question.end(), call.begin(), call.end());
    const told answer = asking.ask(question);
    if (!answer.good()) return std::nullopt;
    return answer.reply.text == "OK";
}

// The same, by trying. Nothing: it does not answer.
std::optional<bool> tried(server_talk& asking, const words& call) {
    const told answer = asking.ask(call);
    if (answer.error) return std::nullopt;
    return answer.refusal() != "NOPERM";
}

std::optional<std::string> own_name(server_talk& asking) {
    const told answer = asking.ask({"ACL", "WHOAMI"});
    if (!answer.good() || !answer.reply.is(resp_reply::kind_t::string)) return std::nullopt;
    return answer.reply.text;
}

std::string advice_for(const std::optional<std::string>& user, std::string_view name_space,
                       server_kind of) {
    return std::string(of == server_kind::node ? "on each node: " : "") + "ACL SETUSER " +
           (user ? *user : std::string("USER")) + " " + acl_rule_for(name_space, of);
}

void deny(std::string_view check, std::string sentence, std::string advice, examination& to) {
    to.bad(check, std::move(sentence), std::move(advice));
    to.code = exit_denied;
}

void check_commands(server_talk& asking, const std::optional<std::string>& user,
                    std::string_view name_space, server_kind of, examination& to) {
    std::string missing;
    bool can_ask = user.has_value();
    for (const words& call : calls_for(name_space, of)) {
        std::optional<bool> granted;
        if (can_ask) granted = may(asking, *user, call);
        can_ask = granted.has_value();
        if (!granted) granted = tried(asking, call);
        if (!granted) return;
        if (!*granted) missing += (missing.empty() ? "" : ", ") + right_to(call);
    }
    const std::string who =
        user ? "the user " + trinco::detail::quoted(*user) : std::string("this user");
    if (missing.empty()) {
        return to.good("rights", who + " may do all that breakers need on keys trinco:1:" +
                                     std::string(name_space) + ":*");
    }
    deny("rights", who + " may not, on keys trinco:1:" + std::string(name_space) + ":*: " + missing,
         advice_for(user, name_space, of), to);
}

// Both directions: who may not write to the channel tells nobody, who may not listen hears late.
void check_channel(server_talk& asking, server_talk& listening,
                   const std::optional<std::string>& user, const breaker_space& space,
                   server_kind of, examination& to) {
    const std::string channel = trinco::detail::breaker_channel(space.name, space.database);
    const told heard = listening.ask({"SUBSCRIBE", channel});
    const bool may_hear = heard.good();
    std::optional<bool> may_tell;
    if (user) may_tell = may(asking, *user, {"PUBLISH", channel, "m"});
    if (!may_tell) {
        // A message that is none is ignored by everybody.
        const told tried = asking.ask({"PUBLISH", channel, "trinco-doctor"});
        may_tell = tried.good();
    }
    if (heard.error) return;
    if (may_hear && *may_tell)
        return to.good("channel",
                       "may be written and listened to: changes "
                       "reach everybody within milliseconds");
    const std::string what = !may_hear && !*may_tell ? "neither written nor listened to"
                             : may_hear              ? "listened to, but not written"
                                                     : "written, but not listened to";
    to.warn("channel",
            "the channel " + channel + " may be " + what +
                ": changes are noticed only when an instance asks (sync_interval)",
            advice_for(user, space.name, of));
}

}  // namespace

std::string acl_rule_for(std::string_view name_space, server_kind of) {
    std::string rule;
    for (const words& call : calls_for(name_space, of)) rule += "+" + right_to(call) + " ";
    const std::string space(name_space);
    return rule + "+ping +info +select +role +publish +subscribe ~trinco:1:" + space + ":* &" +
           trinco::detail::breaker_channel(name_space) + "*";
}

void check_rights(server_talk& asking, server_talk& listening, const std::string& login_user,
                  const breaker_space& space, server_kind of, examination& to) {
    auto user = own_name(asking);
    if (!user) user = login_user.empty() ? "default" : login_user;
    check_commands(asking, user, space.name, of, to);
    check_channel(asking, listening, user, space, of, to);
}

void say_map_is_denied(server_talk& asking, std::string_view name_space, examination& to) {
    deny("rights", "this user may not ask CLUSTER SLOTS, so nobody knows which node has what",
         advice_for(own_name(asking), name_space, server_kind::node), to);
}

}  // namespace trinco::program::doctor
