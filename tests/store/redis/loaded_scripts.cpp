#include "tests/store/redis/loaded_scripts.hpp"

#include <stdexcept>

#include "core/mutant.hpp"
#include "tests/store/redis/record_text.hpp"

namespace trinco::detail::test {

namespace {

constexpr std::string_view mutants[] = {"redis_lease_without_era", "redis_refusal_prolongs_life",
                                        "redis_reads_outside_the_script"};

[[nodiscard]] std::optional<loaded_scripts::bug> bug_alive() {
    for (const std::string_view name : mutants) {
        if (TRINCO_MUTANT(name)) return lua_mutant(name);
    }
    return std::nullopt;
}

void plant(const loaded_scripts::bug& b, std::string& in) {
    const auto at = in.find(b.from);
    if (at == std::string::npos || in.find(b.from, at + 1) != std::string::npos) {
        throw std::runtime_error("not there exactly once: " + b.from);
    }
    in.replace(at, b.from.size(), b.to);
}

}  // namespace

std::optional<loaded_scripts::bug> lua_mutant(std::string_view name) {
    using s = redis_script;
    if (name == mutants[0]) {
        return loaded_scripts::bug{s::probe, "if l[2] ~= r.era or r.state ~= HALF_OPEN",
                                   "if r.state ~= HALF_OPEN"};
    }
    if (name == mutants[1]) {
        return loaded_scripts::bug{s::probe, "save_record(t, granted or r.changed,",
                                   "save_record(t, true,"};
    }
    if (name == mutants[2]) {
        return loaded_scripts::bug{s::probe, "if at_cap or free_slots() == 0 then",
                                   "if ARGV[17] == '0' then"};
    }
    return std::nullopt;
}

loaded_scripts::loaded_scripts(test_connection& on, std::optional<bug> planted) : on_(on) {
    if (!planted) planted = bug_alive();
    const std::string clock = "local function store_time() return tonumber(ARGV[#ARGV]) end\n";
    const auto load = [&](const std::string& text) {
        resp_reply reply = on_.call({"SCRIPT", "LOAD", clock + text});
        if (!reply.is(resp_reply::kind_t::string)) throw std::runtime_error(reply.text);
        return reply.text;
    };
    for (const redis_script s : {redis_script::exchange, redis_script::look, redis_script::probe,
                                 redis_script::control, redis_script::inspect}) {
        std::string text(trinco::detail::text_of(s).substr(redis_time_source().size()));
        if (planted && planted->of == s) plant(*planted, text);
        names_[s] = load(text);
    }
    text_ = load(text_script().substr(redis_time_source().size()));
}

void loaded_scripts::send(const script_call& call, store_time now) {
    std::vector<std::string> words{"EVALSHA", names_.at(call.script),
                                   std::to_string(call.keys.size())};
    words.insert(words.end(), call.keys.begin(), call.keys.end());
    words.insert(words.end(), call.arguments.begin(), call.arguments.end());
    words.push_back(std::to_string(now.count()));
    on_.send(words);
}

std::string loaded_scripts::record(const std::vector<std::string>& keys, store_time now) {
    return on_.call({"EVALSHA", text_, "3", keys[0], keys[1], keys[2], std::to_string(now.count())})
        .text;
}

}  // namespace trinco::detail::test
