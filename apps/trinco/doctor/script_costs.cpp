#include "apps/trinco/doctor/script_costs.hpp"

#include <sys/random.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "apps/trinco/doctor/server_facts.hpp"
#include "apps/trinco/output/distribution.hpp"
#include "core/breaker/policy.hpp"
#include "core/quoted.hpp"
#include "store/redis/redis_scripts.hpp"
#include "store/redis/script_protocol.hpp"
#include "trinco/error.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using trinco::detail::redis_script;
using trinco::detail::resp_reply;
using trinco::detail::script_call;

constexpr int rounds = 20;
constexpr auto slow = 2ms;  // at this rate of exchanges (200/s for a breaker) it is 40 % of a core
constexpr std::string_view breaker = "probe";

std::uint64_t some_number() {
    std::uint64_t n = 0;
    if (::getentropy(&n, sizeof n) != 0) {
        n = static_cast<std::uint64_t>(
            trinco::detail::boot_clock::now().time_since_epoch().count());
    }
    return n | 1U;
}

std::string own_namespace() {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "trinco-doctor-%08x",
                  static_cast<unsigned>(some_number() >> 32U));
    return text.data();
}

// Nothing outlives the shortest time to live.
constexpr std::string_view short_life = "live_for_ms=1000 key_ttl_ms=1000";
std::string short_lived_options() {
    breaker_options o;
    o.live_for = 1s;
    o.key_ttl = 1s;
    return to_text(trinco::detail::policy_of(o));
}

struct measured {
    std::string_view name;
    distribution cost;
};

class trial {
public:
    explicit trial(server_talk& with) : with_(with), space_(own_namespace()) {}
    ~trial() { clear(); }
    trial(const trial&) = delete;
    trial& operator=(const trial&) = delete;

    // The first reply that is no answer ends it.
    [[nodiscard]] std::optional<told> run() {
        std::uint64_t seq = 0;
        exchange(++seq);
        if (!failed_ && seen_.front().cost.most() == 0ns) counted_ = counted_by_server();
        for (measured& one : seen_) one.cost = {};
        for (int i = 0; i < rounds && !failed_; ++i) {
            exchange(++seq);
            look();
            probe();
            control();
            inspect();
        }
        return std::move(failed_);
    }
    [[nodiscard]] const std::array<measured, 5>& seen() const noexcept { return seen_; }

private:
    void exchange(std::uint64_t seq) {
        trinco::detail::news n;
        n.breaker = breaker;
        n.seq = seq;
        n.slices.push_back({{.success = 9, .failure = 1}, 0ms});
        n.options = short_lived_options();
        note(0, send(call_of(space_, who_, n)), trinco::detail::verdict_from);
    }
    void look() {
        trinco::detail::look_request q;
        q.breaker = breaker;
        note(1, send(call_of(space_, q)), trinco::detail::glance_from);
    }
    void probe() {
        trinco::detail::probe_request p;
        p.breaker = breaker;
        p.token = some_number();
        note(2, send(call_of(space_, who_, p)), trinco::detail::probe_reply_from);
    }
    // Brings its own time to live: the record may have run out since the exchange, and one that an
    // operator makes anew lives for an hour.
    void control() {
        trinco::detail::control_request c;
        c.id = some_number();
        c.breaker = breaker;
        c.who = "trinco-doctor";
        c.verb = trinco::detail::control_verb::set;
        c.expires = 1s;
        c.options = short_life;
        note(3, send(call_of(space_, c)), trinco::detail::view_from);
    }
    void inspect() {
        note(4, send(trinco::detail::inspect_call(space_, breaker)),
             [](const resp_reply& reply) { return trinco::detail::report_from(reply, breaker); });
    }

    // With its text: whether the server knows it already is no matter here.
    [[nodiscard]] told send(const std::optional<script_call>& call) {
        if (failed_) return {};
        if (!call) return {make_error_code(errc::invalid), {}, 0ns};
        std::vector<std::string> words = {"EVAL", std::string(text_of(call->script)),
                                          std::to_string(call->keys.size())};
        words.insert(words.end(), call->keys.begin(), call->keys.end());
        words.insert(words.end(), call->arguments.begin(), call->arguments.end());
        return with_.ask(words);
    }

    // Microseconds of all EVAL so far; nothing when the server does not say.
    [[nodiscard]] std::optional<std::uint64_t> counted_by_server() {
        const told info = with_.ask({"INFO", "commandstats"});
        if (!info.good()) return std::nullopt;
        server_facts all;
        all.read_info(info.reply.text);
        const std::string line = all.text("cmdstat_eval").value_or("");
        const auto at = line.find("usec=");
        std::uint64_t usec = 0;
        if (at == std::string::npos) return std::nullopt;
        std::from_chars(line.data() + at + 5, line.data() + line.size(), usec);
        return usec;
    }

    // Of a script that has just run, as the script tells it, or else the server.
    [[nodiscard]] std::chrono::microseconds cost_of(std::chrono::microseconds told_by_script) {
        if (!counted_) return told_by_script;
        const std::uint64_t before = *counted_;
        counted_ = counted_by_server();
        if (!counted_ || *counted_ < before) return told_by_script;
        return std::chrono::microseconds(*counted_ - before);
    }

    template <class Read>
    void note(std::size_t which, told reply, Read read) {
        if (failed_) return;
        if (!reply.good()) {
            failed_ = std::move(reply);
            return;
        }
        const auto answer = read(reply.reply);
        if (answer.error) {
            failed_ = told{answer.error, {}, 0ns};
        } else {
            seen_[which].cost.add(cost_of(answer.cost));
        }
    }

    void clear() {
        std::vector<std::string> words = {"DEL"};
        for (auto& key : trinco::detail::breaker_keys(space_, breaker)) {
            words.push_back(std::move(key));
        }
        static_cast<void>(with_.ask(words));
    }

    server_talk& with_;
    const std::string space_;
    const trinco::detail::breaker_identity who_{"trinco-doctor", "trinco-doctor"};
    std::array<measured, 5> seen_{
        {{"exchange", {}}, {"look", {}}, {"probe", {}}, {"control", {}}, {"inspect", {}}}};
    std::optional<std::uint64_t> counted_;  // where scripts cannot tell
    std::optional<told> failed_;
};

// "script" and "READONLY": servers repeat arguments in their texts, so no more of them is shown.
std::string reason_of(const told& failed) {
    if (failed.error) return failed.error.message();
    return trinco::detail::quoted(failed.reply.text, 200);
}

bool is_denied(const told& failed) {
    return !failed.error && failed.reply.text.find("NOPERM") != std::string::npos;
}

struct known_refusal {
    std::string_view word;
    write_refusal what;
    std::string_view check;  // that tells the cause
};
constexpr std::array<known_refusal, 4> known_refusals{{
    {"OOM", write_refusal::memory, "memory"},
    {"MISCONF", write_refusal::disk, "persistence"},
    {"NOREPLICAS", write_refusal::replicas, "replicas"},
    {"READONLY", write_refusal::replica, "role"},
}};

// Servers before version 7 put the word into the midst of a longer text, some with a '-' before it.
const known_refusal* refusal_in(const told& failed) {
    if (failed.error) return nullptr;
    const std::string text = " " + failed.reply.text;
    for (const known_refusal& one : known_refusals) {
        for (const char before : {' ', '-'}) {
            if (text.find(before + std::string(one.word) + " ") != std::string::npos) return &one;
        }
    }
    return nullptr;
}

bool is_elsewhere(const told& failed) {
    const auto word = failed.refusal();
    return word == "MOVED" || word == "ASK" || word == "TRYAGAIN";
}

write_refusal say_why_not(const told& failed, examination& to) {
    if (is_denied(failed)) {
        const bool may_run = failed.reply.text.find("'eval'") == std::string::npos;
        to.good("scripts", may_run
                               ? "not measured: this user may use no other namespace than its own"
                               : "not measured: this user may not run scripts, see rights");
        return write_refusal::none;
    }
    if (is_elsewhere(failed)) {
        to.good("scripts", "not measured: another node of the cluster has that slot");
        return write_refusal::none;
    }
    if (const known_refusal* const known = refusal_in(failed)) {
        const std::string check(known->check);
        to.warn("scripts",
                "not measured: the server takes no writes now (" + std::string(known->word) +
                    "), see " + check,
                "follow what is said of " + check + ", then look again");
        return known->what;
    }
    if (failed.refusal() == "CLUSTERDOWN") {
        to.bad("scripts",
               "the cluster does not serve all its slots (CLUSTERDOWN): too few of its primaries "
               "answer for a majority, or some slots have none",
               "look at CLUSTER NODES and CLUSTER INFO, and bring the nodes that fail back; each "
               "process decides by itself meanwhile");
        return write_refusal::none;
    }
    to.bad("scripts", "the scripts of breakers do not run here: " + reason_of(failed),
           "breakers need a primary of Redis from 6.0 on, or of Valkey, with Lua and "
           "cmsgpack, that takes writes");
    return write_refusal::none;
}

void tell_costs(const std::array<measured, 5>& seen, examination& to) {
    std::string text = "the server's own time, by " + std::to_string(rounds) + " runs each: ";
    json_object figures;
    bool is_slow = false;
    for (const measured& one : seen) {
        if (one.name != seen.front().name) text += "; ";
        text += std::string(one.name) + " " + summary_of(one.cost);
        figures.add_raw(one.name, json_of(one.cost).text());
        is_slow = is_slow || one.cost.p50() > slow;
    }
    if (!is_slow) return to.good("scripts", std::move(text), std::move(figures));
    to.add({level::warn, "scripts", std::move(text),
            "the server is slow or shares its processor: look at SLOWLOG GET and at its machine",
            std::move(figures)});
}

}  // namespace

std::string key_of_script_trial() {
    return trinco::detail::breaker_keys(own_namespace(), breaker).front();
}

write_refusal check_script_costs(server_talk& asking, examination& to) {
    trial of(asking);
    if (const auto failed = of.run()) return say_why_not(*failed, to);
    tell_costs(of.seen(), to);
    return write_refusal::none;
}

}  // namespace trinco::program::doctor
