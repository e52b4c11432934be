#include "store/redis/redis_steps.hpp"

#include <string_view>

#include "core/quoted.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

namespace {

constexpr std::size_t longest_line = 160;

// Whether a server that repeats what it was sent may have put some of the password into its line:
// it may have cut it, and replaced bytes of it.
bool may_hold_password(const redis_step& step, std::string_view line) {
    if (step.words.front() != "AUTH") return false;
    if (line.find("unknown command") != std::string_view::npos) return true;
    constexpr std::size_t enough = 4;  // bytes of it that are hardly there by chance
    const std::string_view password = step.words.back();
    std::size_t at = 0;
    do {
        if (line.find(password.substr(at, enough)) != std::string_view::npos) return true;
        at += enough;
    } while (at + enough <= password.size());
    return false;
}

}  // namespace

std::optional<redis_refusal> refusal_of(const redis_step& step, const resp_reply& reply) {
    const auto word = reply.error_word();
    if (word.empty()) return {};
    const bool denied = word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM";
    const std::string_view line = reply.text;
    return redis_refusal{denied ? errc::denied : errc::unavailable,
                         "the server refused " + step.words.front() + ": " +
                             (may_hold_password(step, line) ? std::string(word)
                                                            : detail::quoted(line, longest_line))};
}

std::vector<redis_step> login_steps(const redis_login& login, unsigned database) {
    std::vector<redis_step> steps;
    if (!login.password.empty()) {
        redis_step auth{{"AUTH"}};
        if (!login.user.empty()) auth.words.push_back(login.user);
        auth.words.push_back(login.password);
        steps.push_back(std::move(auth));
    }
    if (database != 0) steps.push_back({{"SELECT", std::to_string(database)}});
    return steps;
}

redis_step name_step() {
    return {{"CLIENT", "SETNAME", "trinco"}, [](const resp_reply& reply) {
                const auto word = reply.error_word();
                const bool outside = word == "NOAUTH" || word == "DENIED";
                return outside ? refusal_of({{"CLIENT"}}, reply) : std::nullopt;
            }};
}

redis_step primary_step() {
    redis_step role{{"ROLE"}};
    role.check = [step = role](const resp_reply& reply) -> std::optional<redis_refusal> {
        if (auto refusal = refusal_of(step, reply)) return refusal;
        const bool says = reply.is(resp_reply::kind_t::array) && !reply.elements.empty();
        if (says && reply.elements.front().text == "master") return {};
        return redis_refusal{errc::unavailable, "the server is a replica, not a primary"};
    };
    return role;
}

}  // namespace trinco::detail
