// What the scripts would answer, for tests without a server. See the heads of lua/*.lua.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/breaker/view.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail::test {

inline view view_of(era_t era, std::uint64_t rev = 0) {
    view v;
    v.era = era;
    v.rev = rev;
    return v;
}

inline resp_reply number_reply(std::uint64_t n) {
    return resp_reply::of(static_cast<std::int64_t>(n));
}

inline resp_reply view_reply(const view& v) {
    return resp_reply::of({number_reply(v.era), number_reply(v.rev),
                           number_reply(static_cast<std::uint64_t>(v.state)), number_reply(0),
                           number_reply(0), number_reply(0), number_reply(0), number_reply(0),
                           resp_reply::of(v.reason)});
}

inline resp_reply counts_reply() {
    return resp_reply::of(std::vector<resp_reply>(6, number_reply(0)));
}

struct answer_details {
    bool published = true;
    std::chrono::milliseconds lives = std::chrono::hours(1);
    bool send_options = false;
};

// Of exchange.
inline resp_reply answer_of(const view& v, answer_details more = {}) {
    std::vector<resp_reply> all{resp_reply::of(std::string("ok"))};
    for (const std::uint64_t n : {1, 1, 0, 1, 0, 0, 100}) all.push_back(number_reply(n));
    all.push_back(number_reply(more.send_options ? 1 : 0));
    all.push_back(resp_reply::of(std::string()));
    all.push_back(counts_reply());
    all.push_back(view_reply(v));
    all.push_back(number_reply(more.published ? 1 : 0));
    all.push_back(number_reply(static_cast<std::uint64_t>(more.lives.count())));
    all.push_back(number_reply(50));
    return resp_reply::of(std::move(all));
}

// Of inspect.
inline resp_reply report_answer(const view& v) {
    std::vector<resp_reply> all{resp_reply::of(std::string("ok")), view_reply(v), counts_reply()};
    for (const std::uint64_t n : {1, 0, 0, 100}) all.push_back(number_reply(n));
    all.push_back(resp_reply::of(std::string()));
    for (int k = 0; k < 2; ++k) all.push_back(number_reply(0));  // options_set, set_remaining
    all.push_back(counts_reply());
    all.push_back(resp_reply::of(std::vector<resp_reply>()));
    all.push_back(number_reply(50));
    return resp_reply::of(std::move(all));
}

// Of the index.
inline resp_reply names_of(const std::vector<std::string>& names) {
    std::vector<resp_reply> all;
    for (const auto& name : names) all.push_back(resp_reply::of(name));
    return resp_reply::of(std::move(all));
}

// What is published.
inline std::string message_of(const std::string& kind, const std::string& breaker, const view& v) {
    return kind + " " + breaker + " " + std::to_string(v.era) + " " + std::to_string(v.rev) +
           " 0 0 0 0 0 0 " + v.reason;
}

}  // namespace trinco::detail::test
