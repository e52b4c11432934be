// A way to a server that a test plays: what was asked stays open until the test answers it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/redis/redis_route.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_reader.hpp"

namespace trinco::detail::test {

class fake_route final : public redis_route {
public:
    using event_kind = route_event::kind_t;
    struct asked {
        std::string key;
        std::vector<std::string> words;
        deadline by;
        completion<resp_reply> done;  // empty: nobody waits
    };

    explicit fake_route(on_event changed = {}) : changed_(std::move(changed)) {}

    op request(std::string_view key, std::string command, deadline by,
               completion<resp_reply> done) override {
        resp_reader reader;
        reader.feed(command);
        const auto parsed = reader.next();
        auto a = std::make_shared<asked>();
        a->key = key;
        for (const auto& word : parsed->elements) a->words.push_back(word.text);
        a->by = by;
        a->done = std::move(done);
        open.push_back(a);
        ++requests;
        return op([a]() noexcept { a->done.reset(); });
    }
    void mistrust(std::string_view, redis_refusal why) override {
        only_time_helps = why.only_time_helps;
        mistrusted.push_back(std::move(why.why));
    }
    void listen(std::string to, on_message message, may_wait wait) override {
        ++listens;
        waits = std::move(wait);
        channel = std::move(to);
        heard_ = std::move(message);
    }
    [[nodiscard]] bool up(std::string_view) const noexcept override { return true; }
    [[nodiscard]] bool awaits() const noexcept override {
        return std::any_of(open.begin(), open.end(), [](const auto& a) { return bool(a->done); });
    }
    [[nodiscard]] route_traffic traffic() const noexcept override { return {requests, 1, 2, 3, 4}; }

    // ---- the test's ---------------------------------------------------------------------------
    [[nodiscard]] const std::vector<std::string>& first() { return open.front()->words; }
    // The request that has waited longest gets its answer.
    void answer(resp_reply reply) { end({}, std::move(reply)); }
    void answer_error(const std::string& text) { answer(resp_reply::error_of(text)); }
    void fail(errc error) { end(error, {}); }
    void change(event_kind kind, redis_refusal reason = {}) { changed_({kind, std::move(reason)}); }
    void say(const std::string& message) { heard_(message); }

    std::deque<std::shared_ptr<asked>> open;
    std::uint64_t requests = 0;
    std::vector<std::string> mistrusted;
    bool only_time_helps = false;  // said with the last of them
    int listens = 0;
    std::string channel;
    may_wait waits;

private:
    void end(std::error_code error, resp_reply reply) {
        const auto a = std::move(open.front());
        open.pop_front();
        auto done = std::move(a->done);
        if (done) done(error, std::move(reply));
    }

    on_event changed_;
    on_message heard_;
};

}  // namespace trinco::detail::test
