#include "apps/trinco/breakers/foreign_keys.hpp"

#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/servers/redis_door.hpp"
#include "apps/trinco/stores/breaker_trouble.hpp"
#include "apps/trinco/stores/store_password.hpp"
#include "core/quoted.hpp"
#include "store/redis/script_protocol.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

// KEYS of a breaker: record and voters are hashes, instances is a sorted set (lua/record.lua).
// Uses what every user of breakers may use.
constexpr std::string_view script = R"(
local replies = {redis.pcall('HGET', KEYS[1], 'layout'), redis.pcall('HGET', KEYS[2], 'layout'),
  redis.pcall('ZCARD', KEYS[3])}
local gone = {}
for at = 1, 3 do
  local reply = replies[at]
  if type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE', 1, true) then
    redis.call('DEL', KEYS[at])
    gone[#gone + 1] = KEYS[at]
  end
end
return gone
)";

}  // namespace

std::variant<std::vector<std::string>, problem> remove_foreign_keys(const settings& with,
                                                                    const std::string& breaker) {
    const auto url = with_password(with);
    if (const auto* const why = std::get_if<problem>(&url)) return *why;
    auto target = detail::parse_redis_url(std::get<std::string>(url));
    if (const auto* const why = std::get_if<std::string>(&target)) {
        return problem{exit_usage, *why};
    }
    const auto keys = detail::breaker_keys(with.name_space, breaker);
    std::vector<std::string> words = {"EVAL", std::string(script), std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    redis_door door(std::move(std::get<detail::redis_target>(target)));
    const auto answer = door.ask(keys.front(), words);
    if (!answer.good()) {
        const std::string why =
            answer.error ? answer.error.message() : detail::quoted(answer.reply.text, 160);
        return problem{answer.error ? exit_code_of(answer.error) : exit_unavailable,
                       "could not remove what is no breaker from under the keys of " + breaker +
                           ": " + why + "; 'trinco doctor" + store_words(with) + "' says more"};
    }
    std::vector<std::string> gone;
    for (const auto& one : answer.reply.elements) gone.push_back(one.text);
    return gone;
}

}  // namespace trinco::program
