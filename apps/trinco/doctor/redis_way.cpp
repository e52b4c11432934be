#include "apps/trinco/doctor/redis_way.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <utility>

#include "apps/trinco/output/distribution.hpp"
#include "core/quoted.hpp"
#include "net/socket_factory.hpp"
#include "net/tls_factory.hpp"
#include "trinco/error.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using trinco::detail::redis_login;
using trinco::detail::redis_refusal;
using trinco::detail::resp_reply;
using trinco::detail::stream_address;

constexpr int pings = 50;
constexpr auto patience = 2s;
// A cached call never waits for it, but a probe and a strict call do.
constexpr auto slow_way = 20ms;

bool is_name(const std::error_code& error) {
    return error.category() == trinco::detail::net_category();
}

std::string at_of(const stream_address& where) {
    return trinco::detail::text_of(where);
}

void say_unreachable(const stream_address& where, const std::error_code& error, examination& to) {
    if (is_name(error)) {
        return to.bad("name", connect_sentence(where, error),
                      "correct the host in the URL, or the names of this machine (/etc/hosts, "
                      "DNS)");
    }
    const bool is_denied = error == std::errc::permission_denied;
    to.bad("connect", connect_sentence(where, error),
           is_denied ? "let this user use the socket (unixsocketperm, group)"
                     : "is the server running, and does it listen there (bind, port, firewall)?");
}

struct known_silence {
    std::string_view word;
    std::string_view sentence;  // after the address
    std::string_view advice;
};
// Of a server that answers nobody for a while.
constexpr std::array known_silences{
    known_silence{
        "BUSY",
        "a script has been running for too long, and until it ends nobody else is "
        "served (BUSY)",
        "SCRIPT KILL ends it, unless it has written something: then wait, or SHUTDOWN "
        "NOSAVE, which loses what was not saved; SLOWLOG GET tells afterwards which it was"},
    known_silence{"LOADING",
                  "it is still reading its data, and serves nobody until it has (LOADING)",
                  "wait; INFO persistence tells how far it is (loading_eta_seconds)"},
    known_silence{"MASTERDOWN",
                  "a replica that has lost its primary, and serves nobody meanwhile (MASTERDOWN)",
                  "name the primary, or the Sentinels that know it: "
                  "redis+sentinel://HOST,HOST/NAME"},
};

// What a server answered last while it let us in; written before reach() ends.
using last_word = std::shared_ptr<std::string>;

// PING last: who may not use it, and whose server takes no writes, is examined all the same.
std::vector<trinco::detail::redis_step> steps_of(const redis_login& login, unsigned database,
                                                 const last_word& heard) {
    auto steps = trinco::detail::login_steps(login, database);
    steps.push_back({{"PING"}});
    for (auto& step : steps) {
        step.check = [heard, of = trinco::detail::redis_step{step.words}](
                         const resp_reply& reply) -> std::optional<redis_refusal> {
            *heard = std::string(reply.error_word());
            const bool is_ping = of.words.front() == "PING";
            const bool is_borne =
                *heard == "NOPERM" || *heard == "MISCONF" || *heard == "MASTERDOWN";
            if (is_ping && is_borne) return std::nullopt;
            return trinco::detail::refusal_of(of, reply);
        };
    }
    return steps;
}

// `advice`: a better one than is known of all.
bool say_known_silence(const stream_address& where, const std::string& word, examination& to,
                       const std::string& advice = {}) {
    const auto known = std::find_if(known_silences.begin(), known_silences.end(),
                                    [&](const known_silence& k) { return k.word == word; });
    if (known == known_silences.end()) return false;
    to.bad("answer", at_of(where) + ": " + std::string(known->sentence),
           advice.empty() ? std::string(known->advice) : advice);
    return true;
}

// Where its primary is it tells all the same.
std::string advice_of_role(server_talk& with) {
    examination aside;
    judge_role(read_facts(with), aside);
    return aside.all.empty() ? std::string() : aside.all.front().advice;
}

void say_silent(const stream_address& where, examination& to) {
    if (where.tls) {
        // A server without TLS waits for the end of what it takes for a command.
        return to.bad("tls", at_of(where) + " accepts connections and does not answer to TLS",
                      "write redis:// in the URL when this port is one without TLS; is the server "
                      "paused, or its machine overloaded?");
    }
    to.bad("login", at_of(where) + " accepts connections and does not answer",
           "is it paused or stuck (its process, its disk, its machine)? When the port is one for "
           "TLS, write rediss:// in the URL; or is it that of another program?");
}

std::string user_of(const redis_login& login) {
    return login.user.empty() ? "default" : login.user;
}

void say_not_let_in(const stream_address& where, const redis_login& login, const redis_refusal& why,
                    const std::string& word, examination& to) {
    if (say_known_silence(where, word, to)) return;
    if (word == "NOPERM") {
        to.bad("rights",
               "the user " + trinco::detail::quoted(user_of(login)) +
                   " may not use the database of the URL: " + why.why,
               "ACL SETUSER " + user_of(login) +
                   " +select, then look again: what else is missing is told next");
        to.code = exit_denied;
        return;
    }
    if (why.error == std::errc::timed_out) return say_silent(where, to);
    if (why.error == errc::denied) {
        const std::string as =
            login.password.empty()
                ? "without a password"
                : "as " + (login.user.empty() ? std::string("the user default")
                                              : "the user " + trinco::detail::quoted(login.user));
        to.bad("login", at_of(where) + " does not let us in " + as + ": " + why.why,
               "put the password into TRINCO_BREAKERS_PASSWORD, or the name of its file into "
               "TRINCO_BREAKERS_PASSWORD_FILE or breakers.password_file of trinco.toml; the user "
               "into the URL: redis://USER@HOST");
        to.code = exit_denied;
        return;
    }
    if (where.tls) {
        return to.bad("tls",
                      at_of(where) + " took the connection, but TLS on it failed: " + why.why,
                      "is the port the one for TLS? Give ca=FILE, server_name=NAME, or cert=FILE "
                      "and key=FILE in the URL");
    }
    to.bad("login",
           at_of(where) + " took the connection and does not answer as it should: " + why.why,
           "is the port one for TLS, or that of another program?");
}

}  // namespace

redis_way::redis_way()
    : sockets_(trinco::detail::make_socket_factory(on_)),
      tls_(trinco::detail::make_tls_factory(on_, *sockets_)) {
    on_.start();
}

redis_way::~redis_way() {
    static_cast<void>(trinco::detail::run_and_wait(on_, 2s, [this] {
        tls_.reset();
        sockets_.reset();
    }));
    on_.stop(2s);
}

std::unique_ptr<server_talk> redis_way::walk(const stream_address& where, const redis_login& login,
                                             unsigned database, bool quiet, examination& to) {
    const knock first = knock_at(on_, *sockets_, where, patience);
    if (first.error) {
        say_unreachable(where, first.error, to);
        return nullptr;
    }
    const auto heard = std::make_shared<std::string>();
    auto talk = std::make_unique<server_talk>(on_, *tls_, where, steps_of(login, database, heard));
    if (const auto why = talk->reach(patience + 1s)) {
        say_not_let_in(where, login, *why, why->error == std::errc::timed_out ? "" : *heard, to);
        return nullptr;
    }
    if (*heard == "MASTERDOWN") {
        say_known_silence(where, *heard, to, advice_of_role(*talk));
        return nullptr;
    }
    if (quiet) return talk;
    to.good("connect", at_of(where) + ", in " + measured_text(first.took),
            json_object().add("took_us", first.took / 1us));
    if (where.tls && !where.tls->verify) {
        to.warn("tls",
                "anybody is believed (verify=no): whoever is in between can read and change "
                "everything",
                "take verify=no away; ca=FILE names the authority to believe");
    } else if (where.tls) {
        to.good("tls", "the certificate is for the name that was asked for, and believed");
    }
    if (!login.password.empty()) {
        to.good("login", "as " + (login.user.empty() ? std::string("the user default")
                                                     : trinco::detail::quoted(login.user)));
    }
    return talk;
}

std::unique_ptr<server_talk> redis_way::another(const stream_address& where,
                                                const redis_login& login) {
    auto talk =
        std::make_unique<server_talk>(on_, *tls_, where, trinco::detail::login_steps(login, 0));
    static_cast<void>(talk->reach(patience));
    return talk;
}

void check_round_trip(server_talk& with, examination& to) {
    distribution took;
    for (int i = 0; i < pings; ++i) {
        const told answer = with.ask({"PING"}, patience);
        if (answer.error) {
            return to.bad("round-trip", "a PING was not answered within 2 s: is the server busy?",
                          "look at SLOWLOG GET, and for long scripts and KEYS of others");
        }
        took.add(answer.took);
    }
    std::string text = "by " + std::to_string(pings) + " PINGs: " + summary_of(took);
    json_object figures = json_of(took);
    if (took.p50() <= slow_way) {
        return to.good("round-trip", std::move(text), std::move(figures));
    }
    to.add({level::warn, "round-trip", std::move(text),
            "a call never waits for it while a breaker is closed or open, a probe and strict mode "
            "do: bring the server nearer, and set store_timeout above p99",
            std::move(figures)});
}

void check_clock(server_talk& with, examination& to) {
    using std::chrono::microseconds;
    using std::chrono::system_clock;
    const auto before = system_clock::now();
    const told answer = with.ask({"TIME"}, patience);
    const auto after = system_clock::now();
    if (!answer.good() || answer.reply.elements.size() != 2) return;
    std::array<std::int64_t, 2> parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string& text = answer.reply.elements[i].text;
        if (std::from_chars(text.data(), text.data() + text.size(), parts[i]).ec != std::errc()) {
            return;
        }
    }
    const microseconds server(parts[0] * 1'000'000 + parts[1]);
    const auto ours = before + (after - before) / 2;
    const auto apart = server - std::chrono::duration_cast<microseconds>(ours.time_since_epoch());
    const auto distance = std::max(apart, -apart);
    const bool is_same =
        distance < std::max<microseconds>(2ms, std::chrono::ceil<microseconds>(after - before));
    to.good("clock",
            (is_same ? "the server's agrees with this machine's"
                     : "the server's is " + measured_text(distance) +
                           (apart.count() > 0 ? " ahead of" : " behind") + " this machine's") +
                std::string("; no decision compares the two"),
            json_object().add("server_ahead_us", apart.count()));
}

server_facts read_facts(server_talk& with) {
    server_facts facts;
    const told info = with.ask({"INFO"}, patience);
    if (info.good()) facts.read_info(info.reply.text);
    for (const char* key :
         {"maxmemory-policy", "save", "appendonly", "appendfsync", "min-replicas-to-write"}) {
        const told answer = with.ask({"CONFIG", "GET", key}, patience);
        if (!answer.good()) break;  // denied for one, denied for all
        if (answer.reply.elements.size() == 2) {
            facts.set_config(answer.reply.elements[0].text, answer.reply.elements[1].text);
        }
    }
    return facts;
}

}  // namespace trinco::program::doctor
