#include "apps/trinco/doctor/key_types.hpp"

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "apps/trinco/doctor/redis_cli_line.hpp"
#include "apps/trinco/output/visible.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"
#include "store/redis/script_protocol.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using trinco::detail::resp_reply;

constexpr std::size_t most_names = 1'000;
constexpr std::size_t most_found = 3'000;
constexpr std::size_t keys_a_step = 500;  // of SCAN: some 100 us of the server's time
constexpr std::size_t most_told = 10;
constexpr auto search_within = 1s;
constexpr auto read_within = 2s;

std::string prefix_of(std::string_view name_space) {
    const std::string index = trinco::detail::breaker_index_key(name_space);
    return index.substr(0, index.rfind(':') + 1);
}

bool is_of_wrong_type(const told& answer) {
    return answer.refusal() == "WRONGTYPE";
}

struct found_keys {
    std::set<std::string> all;
    std::size_t names = 0;
    bool is_all = true;
    bool is_denied = false;  // the list of names
};

void take_names(server_talk& with, std::string_view name_space, found_keys& to) {
    const std::string index = trinco::detail::breaker_index_key(name_space);
    to.all.insert(index);
    const told names =
        with.ask({"ZRANGEBYLEX", index, "-", "+", "LIMIT", "0", std::to_string(most_names + 1)});
    to.is_denied = names.refusal() == "NOPERM";
    if (!names.good()) return;
    for (const resp_reply& one : names.reply.elements) {
        if (to.names == most_names) {
            to.is_all = false;
            return;
        }
        if (trinco::detail::check_breaker_name(one.text)) continue;
        ++to.names;
        for (auto& key : trinco::detail::breaker_keys(name_space, one.text)) {
            to.all.insert(std::move(key));
        }
    }
}

// Also of breakers that no list knows.
void search(server_talk& with, std::string_view name_space, found_keys& to) {
    const std::string pattern = prefix_of(name_space) + "*";
    const auto end = clock::now() + search_within;
    std::string cursor = "0";
    do {
        const told step =
            with.ask({"SCAN", cursor, "MATCH", pattern, "COUNT", std::to_string(keys_a_step)});
        if (!step.good() || step.reply.elements.size() != 2) return;  // no right to it
        for (const resp_reply& key : step.reply.elements[1].elements) {
            if (expected_at(key.text, name_space)) to.all.insert(key.text);
        }
        cursor = step.reply.elements[0].text;
    } while (cursor != "0" && clock::now() < end && to.all.size() < most_found);
    if (cursor != "0") to.is_all = false;
}

// "a string", "something else" where the user may not ask.
std::string type_text(server_talk& with, const std::string& key) {
    const told type = with.ask({"TYPE", key});
    if (!type.good() || type.reply.text == "none") return "something else";
    return "a " + visible(type.reply.text).substr(0, 20);
}

finding foreign(server_talk& with, const examined_server& server, const std::string& key,
                const expected_key& expected) {
    const std::string remove = redis_cli_line(server.target, server.where, {"DEL", key});
    const std::string look = redis_cli_line(server.target, server.where, {"TYPE", key});
    finding one;
    one.check = "keys";
    const std::string shown = trinco::detail::quoted(key, 300);
    const std::string type = type_text(with, key);
    if (expected.breaker.empty()) {
        one.how = level::warn;
        one.sentence = shown + " is " + type +
                       ", where the list of all names belongs, a zset: breakers work, but nobody "
                       "can list or show them";
        one.advice =
            "find out who wrote it, and remove it; processes that use breakers put their names in "
            "again within a minute:";
        one.commands = {look, remove};
        return one;
    }
    const std::string name(expected.breaker);
    one.how = level::bad;
    one.sentence = shown + " is " + type + ", where the breaker " + name + " keeps a " +
                   std::string(expected.type) + ": each process decides about " + name + " alone";
    one.advice = "find out who wrote it, and remove it, by either of the last two:";
    one.commands = {look,
                    "trinco breakers forget " + name + " --confirm " + name + " --force" +
                        std::string(server.words),
                    remove};
    return one;
}

// By a read that every user of breakers may do: TYPE may be denied.
told read_of(server_talk& with, const std::string& key, const expected_key& expected) {
    if (expected.type == "hash") return with.ask({"HGET", key, "layout"});
    return with.ask({"ZCARD", key});
}

}  // namespace

std::optional<expected_key> expected_at(std::string_view key, std::string_view name_space) {
    const std::string prefix = prefix_of(name_space);
    if (!key.starts_with(prefix)) return std::nullopt;
    key.remove_prefix(prefix.size());
    if (key == "index") return expected_key{"zset", {}};
    const auto end = key.find('}');
    if (!key.starts_with('{') || end == std::string_view::npos) return std::nullopt;
    const std::string_view name = key.substr(1, end - 1);
    const std::string_view part = key.substr(end + 1);
    if (trinco::detail::check_breaker_name(name)) return std::nullopt;
    if (part.empty() || part == ":voters") return expected_key{"hash", name};
    if (part == ":instances") return expected_key{"zset", name};
    return std::nullopt;
}

void check_key_types(server_talk& with, const examined_server& server, std::string_view name_space,
                     examination& to) {
    found_keys keys;
    take_names(with, name_space, keys);
    search(with, name_space, keys);
    const auto end = clock::now() + read_within;
    std::size_t wrong = 0;
    for (const std::string& key : keys.all) {
        const auto expected = expected_at(key, name_space);
        if (!expected || !is_of_wrong_type(read_of(with, key, *expected))) continue;
        if (++wrong <= most_told) to.add(foreign(with, server, key, *expected));
        if (clock::now() > end) {
            keys.is_all = false;
            break;
        }
    }
    if (wrong > most_told) {
        to.bad("keys", std::to_string(wrong - most_told) + " more keys are of a wrong type",
               "mend these, then look again");
    }
    if (wrong > 0) return;
    if (keys.is_denied) {
        return to.good("keys", "not looked at: this user may not read the list of names");
    }
    to.good("keys", std::to_string(keys.names) + (keys.names == 1 ? " breaker" : " breakers") +
                        " in the list; no key of theirs is of a wrong type" +
                        (keys.is_all ? "" : ", as far as was looked"));
}

}  // namespace trinco::program::doctor
