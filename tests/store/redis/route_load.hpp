// Requests one after the other through a route on a real loop, and what became of them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "store/redis/redis_route.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail::test {

// The loop's thread, but for the constructor. Must end before the route.
class route_load {
public:
    // Which key the n-th request is about, and its words.
    struct request {
        std::string key;
        std::vector<std::string> words;
    };
    using maker = std::function<request(std::size_t n)>;

    struct result {
        std::size_t sent = 0;
        std::size_t answered = 0;                   // with what is no error
        std::size_t unknown = 0;                    // may have happened
        std::size_t not_applied = 0;                // unavailable, busy ...
        std::map<std::string, std::size_t> errors;  // of the server, by their first word
        boot_clock::duration longest{};             // wait for an answer
        boot_clock::time_point last_answer{};
        [[nodiscard]] std::size_t ended() const {
            std::size_t n = answered + unknown + not_applied;
            for (const auto& [word, times] : errors) n += times;
            return n;
        }
    };

    route_load(loop& on, redis_route& by, maker make, std::chrono::milliseconds pace,
               std::chrono::milliseconds within)
        : on_(on), route_(by), make_(std::move(make)), pace_(pace), within_(within) {}

    void begin() { next(); }
    void stop() { timer_.cancel(); }
    [[nodiscard]] const result& so_far() const { return result_; }
    [[nodiscard]] bool is_settled() const { return result_.ended() == result_.sent; }

private:
    void next() {
        timer_ = on_.after(pace_, [this] { next(); });
        auto one = make_(result_.sent++);
        const auto began = on_.now();
        ops_.push_back(
            route_.request(one.key, resp_command(one.words), began + within_,
                           [this, began](std::error_code error, const resp_reply& reply) {
                               if (error == errc::unknown_outcome) {
                                   ++result_.unknown;
                               } else if (error) {
                                   ++result_.not_applied;
                               } else if (!reply.error_word().empty()) {
                                   ++result_.errors[std::string(reply.error_word())];
                               } else {
                                   ++result_.answered;
                                   result_.last_answer = on_.now();
                                   result_.longest = std::max(result_.longest, on_.now() - began);
                               }
                           }));
    }

    loop& on_;
    redis_route& route_;
    maker make_;
    std::chrono::milliseconds pace_;
    std::chrono::milliseconds within_;
    result result_;
    std::vector<op> ops_;
    op timer_;
};

}  // namespace trinco::detail::test
