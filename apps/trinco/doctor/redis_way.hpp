// The way to one server of Redis, and what it answers there.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/doctor/server_facts.hpp"
#include "apps/trinco/doctor/server_talk.hpp"
#include "store/redis/redis_url.hpp"

namespace trinco::program::doctor {

// The loop and the connections of one examination.
class redis_way {
public:
    redis_way();
    ~redis_way();
    redis_way(const redis_way&) = delete;
    redis_way& operator=(const redis_way&) = delete;

    // A conversation with the server, or null after having said which step failed: "name",
    // "connect", "tls" or "login". Also adds those that went well, unless `quiet`.
    [[nodiscard]] std::unique_ptr<server_talk> walk(const trinco::detail::stream_address& where,
                                                    const trinco::detail::redis_login& login,
                                                    unsigned database, bool quiet, examination& to);
    // Another one with the same server, without a word; perhaps not up.
    [[nodiscard]] std::unique_ptr<server_talk> another(const trinco::detail::stream_address& where,
                                                       const trinco::detail::redis_login& login);

private:
    trinco::detail::event_loop on_;
    std::unique_ptr<trinco::detail::stream_factory> sockets_;
    std::unique_ptr<trinco::detail::stream_factory> tls_;
};

// "round-trip": the median and the 99th percentile of 50 PINGs.
void check_round_trip(server_talk& with, examination& to);
// "clock": how far the server's is from ours. Nothing depends on it.
void check_clock(server_talk& with, examination& to);
[[nodiscard]] server_facts read_facts(server_talk& with);

}  // namespace trinco::program::doctor
