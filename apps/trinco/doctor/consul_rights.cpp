#include "apps/trinco/doctor/consul_rights.hpp"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/trinco/doctor/consul_facts.hpp"
#include "apps/trinco/doctor/round_trips.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/distribution.hpp"
#include "apps/trinco/problem.hpp"
#include "core/quoted.hpp"
#include "store/consul/consul_layout.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;
namespace consul = trinco::detail::consul;
using verb_t = consul::operation::verb_t;

constexpr auto patience = 3s;
constexpr int rounds = 10;
constexpr auto least_of_ours = 10s;  // no shorter session is asked for by locks

std::string in_quotes(std::string_view text) {
    return trinco::detail::quoted(text, 200);
}

std::string rule_of(const std::string& kind, const std::string& what) {
    return kind + " \"" + what + R"(" { policy = "write" })";
}

// What makes a policy of these rules.
std::string command_of(const std::vector<std::string>& rules) {
    std::string text = "consul acl policy create -name NAME -rules '";
    for (const auto& rule : rules) text += (rule == rules.front() ? "" : " ") + rule;
    return text + "'";
}

class trial {
public:
    trial(consul_talk& with, const consul_trial& where, examination& to)
        : with_(with), where_(where), keys_(where.target.prefix + where.prefix), to_(to) {}

    std::optional<seconds> run();

private:
    // Why, in the server's words where they are known.
    void note(const std::error_code& error, const std::string& words) {
        if (!error) return;
        refusal_ = words.empty() ? with_.why(error) : words;
        if (error == errc::denied) denial_ = refusal_;
    }
    // What is refused is an error here.
    consul_told<consul::txn_reply> step(consul::operation what);
    std::optional<seconds> find_least_ttl();
    std::error_code open(seconds ttl);
    void close();
    std::error_code may_write(const std::string& key);
    bool take_and_give_back();
    bool renew();
    void try_once();
    // False: it was said why.
    bool is_well(const std::error_code& error, std::string_view what);
    // Whether no right is missing; otherwise it was said which.
    bool has_rights(const std::error_code& of_session, const std::error_code& of_keys);
    bool has_token() const {
        const auto& way = where_.target.way;
        return !way.token.empty() || !way.token_file.empty();
    }
    std::string key_of(const std::string& name) const {
        return consul::lock_key(where_.target.prefix, name, where_.target.plain_keys);
    }

    consul_talk& with_;
    const consul_trial& where_;
    const std::string keys_;  // what all keys of locks begin with
    examination& to_;
    std::string session_;
    std::string refusal_;  // the server's last words
    std::string denial_;   // the same, of what is a matter of rights
    bool is_short_of_rights_ = false;
    distribution commits_;
    distribution reads_;
};

consul_told<consul::txn_reply> trial::step(consul::operation what) {
    consul::txn_request ask;
    ask.operations.push_back(std::move(what));
    auto told =
        with_.ask<consul::txn_reply>(patience, [ask](consul::rpc& link, auto by, auto done) {
            return link.txn(ask, by, std::move(done));
        });
    if (told.error || told.value.applied) {
        note(told.error, {});
        return told;
    }
    told.error = make_error_code(errc::conflict);
    for (const auto& one : told.value.refusals) {
        if (one.why == consul::refusal_t::denied) told.error = make_error_code(errc::denied);
        note(told.error, one.what);
    }
    return told;
}

std::error_code trial::open(seconds ttl) {
    const consul::session_request ask{"trinco doctor", ttl, 0s, true};
    auto told = with_.ask<std::string>(patience, [ask](consul::rpc& link, auto by, auto done) {
        return link.create(ask, by, std::move(done));
    });
    note(told.error, {});
    session_ = std::move(told.value);
    return told.error;
}

void trial::close() {
    if (session_.empty()) return;
    static_cast<void>(with_.ask<int>(patience, [this](consul::rpc& link, auto by, auto done) {
        return link.destroy(session_, by, std::move(done));
    }));
    session_.clear();
}

// A second is refused where more is the least.
std::optional<seconds> trial::find_least_ttl() {
    const auto error = open(1s);
    close();
    if (!error) return 1s;
    return error == errc::invalid ? least_ttl_in(refusal_) : std::nullopt;
}

// Asked so that nothing is written.
std::error_code trial::may_write(const std::string& key) {
    consul::operation look;
    look.verb = verb_t::check_not_exists;
    look.key = key;
    const auto error = step(std::move(look)).error;
    return error == errc::conflict ? std::error_code() : error;
}

std::optional<seconds> trial::run() {
    const auto least = find_least_ttl();
    const auto of_session = open(std::max<seconds>(least.value_or(least_of_ours), least_of_ours));
    const auto of_keys = may_write(key_of(where_.prefix + "trinco-doctor"));
    const bool all_well = has_rights(of_session, of_keys) && take_and_give_back() && renew();
    close();
    if (all_well) {
        to_.good("rights",
                 "sessions can be made, and locks" +
                     (keys_.empty() ? "" : " whose names begin with " + in_quotes(keys_)) +
                     " taken, renewed and given back");
        judge_round_trips(commits_, reads_, to_);
    }
    if (all_well || is_short_of_rights_) try_once();
    return least;
}

bool trial::take_and_give_back() {
    // Nobody else's: another examination may be under way.
    const auto key = key_of(where_.prefix + "trinco-doctor-" + session_);
    const consul::operation lock{verb_t::lock,       key, "trinco doctor",
                                 consul::lock_flags, 0,   session_};
    for (int i = 0; i < rounds; ++i) {
        const auto taken = step(lock);
        if (!is_well(taken.error, "take a lock")) return false;
        const auto read =
            with_.ask<consul::read_reply>(patience, [&](consul::rpc& link, auto by, auto done) {
                return link.read({key, false, true}, by, std::move(done));
            });
        note(read.error, {});
        if (!is_well(read.error, "read the key of a lock")) return false;
        consul::operation erase;
        erase.verb = verb_t::erase;
        erase.key = key;
        const auto erased = step(std::move(erase));
        if (!is_well(erased.error, "give a lock back")) return false;
        commits_.add(taken.took);
        commits_.add(erased.took);
        reads_.add(read.took);
    }
    return true;
}

bool trial::renew() {
    const auto renewed =
        with_.ask<seconds>(patience, [this](consul::rpc& link, auto by, auto done) {
            return link.renew(session_, by, std::move(done));
        });
    note(renewed.error, {});
    return is_well(renewed.error, "renew a session");
}

bool trial::is_well(const std::error_code& error, std::string_view what) {
    if (!error) return true;
    to_.code = exit_code_of(error);
    to_.bad("lock", "it could not " + std::string(what) + ": " + refusal_,
            "look at the log of Consul, and at the load of its disks");
    return false;
}

bool trial::has_rights(const std::error_code& of_session, const std::error_code& of_keys) {
    const bool no_sessions = of_session == errc::denied;
    const bool no_keys = of_keys == errc::denied;
    if (!no_sessions && !no_keys) {
        return is_well(of_session, "make a session") && is_well(of_keys, "ask for a key");
    }
    to_.code = exit_denied;
    // Nobody looked what the token may do: it is unknown, or its file cannot be read.
    if (denial_.find("Permission denied") == std::string::npos) {
        to_.bad("token", denial_,
                "name one that Consul made: token_file=FILE in the URL, or CONSUL_HTTP_TOKEN");
        return false;
    }
    is_short_of_rights_ = true;
    const std::string who = has_token() ? "the token" : "whoever names no token";
    std::string may_not = no_sessions ? " may not make sessions (session:write)" : "";
    if (no_keys) {
        may_not += (no_sessions ? ", nor" : " may not") + std::string(" write the keys of locks") +
                   (keys_.empty() ? "" : ", which begin with " + in_quotes(keys_)) + " (key:write)";
    }
    finding one{level::bad,
                "rights",
                who + may_not,
                std::string(has_token() ? "give it"
                                        : "name a token (token_file=FILE in the URL, or "
                                          "CONSUL_HTTP_TOKEN) with") +
                    " a policy that allows this" +
                    (no_keys && keys_.empty()
                         ? " for all names of locks; or name with --prefix those that it may use"
                         : ""),
                {}};
    std::vector<std::string> rules;
    if (no_sessions && where_.node.empty()) rules.push_back(rule_of("session_prefix", ""));
    if (no_sessions && !where_.node.empty()) rules.push_back(rule_of("session", where_.node));
    if (no_keys && !keys_.empty()) rules.push_back(rule_of("key_prefix", keys_));
    if (!rules.empty()) one.commands = {command_of(rules)};
    to_.add(std::move(one));
    return false;
}

// The lock of a key of once, and its record, lie beside the locks and need rights of their own.
void trial::try_once() {
    const auto& prefix = where_.prefix;
    const std::string beginning_of_locks = where_.target.prefix + ".trinco/once/" + prefix;
    const std::string beginning_of_records =
        where_.target.prefix + std::string(consul::records_prefix) + "once/" + prefix;
    std::vector<std::string> missing;
    for (const bool is_lock : {true, false}) {
        const auto error = may_write(is_lock ? key_of(".trinco/once/" + prefix + "trinco-doctor")
                                             : beginning_of_records + "trinco-doctor");
        if (error && error != errc::denied) return;  // the next examination shows it with locks
        if (error) missing.push_back(is_lock ? beginning_of_locks : beginning_of_records);
    }
    if (missing.empty()) return to_.good("once", "what 'trinco once' keeps can be written");
    std::string places;
    std::vector<std::string> rules;
    for (const auto& one : missing) {
        places += (places.empty() ? "" : " nor ") + in_quotes(one);
        rules.push_back(rule_of("key_prefix", one));
    }
    finding one{level::warn,
                "once",
                std::string(has_token() ? "the token" : "whoever names no token") +
                    " may not write what begins with " + places +
                    ": 'trinco once' and 'trinco records' are refused",
                "give it a policy that allows this, if they are wanted",
                {}};
    one.commands = {command_of(rules)};
    to_.add(std::move(one));
}

}  // namespace

std::optional<seconds> try_consul_locks(consul_talk& with, const consul_trial& where,
                                        examination& to) {
    return trial(with, where, to).run();
}

}  // namespace trinco::program::doctor
