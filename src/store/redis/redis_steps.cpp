#include "store/redis/redis_steps.hpp"

#include "trinco/error.hpp"

namespace trinco::detail {

std::optional<redis_refusal> refusal_of(const redis_step& step, const resp_reply& reply) {
    const auto word = reply.error_word();
    if (word.empty()) return {};
    const bool denied = word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM";
    return redis_refusal{denied ? errc::denied : errc::unavailable,
                         "the server refused " + step.words.front() + ": " + std::string(word)};
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
