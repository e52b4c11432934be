#include "store/redis/reply_fault.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

using kind = reply_fault::kind_t;

struct known_word {
    std::string_view word;
    kind what;
    errc error;
    std::string_view meaning;
};

constexpr std::string_view in_a_cluster =
    "the server belongs to a cluster, whose URL begins with redis+cluster://";
constexpr std::string_view no_record = "something else than a breaker lives under this key";
constexpr std::string_view no_right =
    "the user lacks a right to a command, a key or a channel; trinco/redis.hpp lists them";

constexpr std::array<known_word, 18> known_words{{
    {"NOSCRIPT", kind::no_script, errc::unavailable, "the server forgets scripts at once"},
    {"READONLY", kind::elsewhere, errc::unavailable, "the server is a replica, not a primary"},
    {"LOADING", kind::elsewhere, errc::unavailable, "the server is still reading its data"},
    {"MASTERDOWN", kind::elsewhere, errc::unavailable, "the server has lost its primary"},
    {"CLUSTERDOWN", kind::elsewhere, errc::unavailable, "the cluster does not serve all slots"},
    {"TRYAGAIN", kind::elsewhere, errc::unavailable, "a slot is moving to another node"},
    {"NOREPLICAS", kind::later, errc::unavailable,
     "fewer replicas than min-replicas-to-write are connected to it"},
    {"MISCONF", kind::later, errc::unavailable,
     "the server cannot save to its disk, and takes no writes until it can"},
    {"OOM", kind::final, errc::busy, "the server has reached its maxmemory and evicts nothing"},
    {"BUSY", kind::final, errc::busy, "a script has been running on the server for too long"},
    {"NOAUTH", kind::final, errc::denied, "the server asks for a password"},
    {"WRONGPASS", kind::final, errc::denied, "user or password are wrong"},
    {"NOPERM", kind::final, errc::denied, no_right},
    {"DENIED", kind::final, errc::denied, "the server serves its own machine only"},
    {"WRONGTYPE", kind::final, errc::conflict, no_record},
    {"MOVED", kind::final, errc::not_supported, in_a_cluster},
    {"ASK", kind::final, errc::not_supported, in_a_cluster},
    {"CROSSSLOT", kind::final, errc::not_supported, in_a_cluster},
}};

const known_word* find_word(std::string_view word) {
    const auto found = std::find_if(known_words.begin(), known_words.end(),
                                    [&](const known_word& k) { return k.word == word; });
    return found == known_words.end() ? nullptr : &*found;
}

// Before version 7 an error inside a script is told as
// "ERR Error running script (call to f_...): @user_script:3: @user_script: 3: OOM command not ...",
// some of them with a '-' before the word.
const known_word* word_inside(std::string_view text) {
    for (auto at = text.find(": "); at != std::string_view::npos; at = text.find(": ", at + 2)) {
        auto rest = text.substr(at + 2);
        if (rest.starts_with('-')) rest.remove_prefix(1);
        if (const auto* known = find_word(rest.substr(0, rest.find(' ')))) return known;
    }
    return nullptr;
}

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// A right that is missing only inside a script has no word of its own, and in each version of the
// servers another text.
bool lacks_a_right(std::string_view text) {
    return has(text, "ACL failure in script") || has(text, "The user executing the script") ||
           has(text, "has no permissions");
}

std::string sentence(std::string_view word, std::string_view meaning) {
    return "the server answers " + std::string(word) + ": " + std::string(meaning);
}

}  // namespace

reply_fault fault_of(const resp_reply& reply) {
    const auto word = reply.error_word();
    const std::string_view text = reply.text;
    const auto* known = find_word(word);
    const bool of_script = has(text, "user_script") || has(text, "running script");
    if (known == nullptr && of_script) known = word_inside(text);
    if (known != nullptr) {
        return {known->what, known->error, sentence(known->word, known->meaning)};
    }
    if (lacks_a_right(text)) return {kind::final, errc::denied, sentence(word, no_right)};
    if (of_script) return {kind::final, errc::conflict, sentence(word, no_record)};
    if (has(text, "unknown command") || has(text, "compiling script")) {
        return {kind::final, errc::not_supported,
                sentence(word,
                         "it does not know a command that breakers need; it must be Redis "
                         "6.0 or later, or Valkey, with EVAL and cmsgpack")};
    }
    return {kind::final, errc::invalid, sentence(word, "it refuses the request")};
}

bool is_of_the_server(std::error_code error) noexcept {
    return error == errc::unavailable || error == errc::unknown_outcome || error == errc::busy ||
           error == errc::denied;
}

}  // namespace trinco::detail
