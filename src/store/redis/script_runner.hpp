// Runs the scripts, and other commands that may be repeated, on whatever server the route leads to,
// and says of every error what it means for the caller.
//
// The rules of core/loop.hpp hold: the loop's thread; a completion runs later and at most once;
// dropping the op drops the interest. When the runner is destroyed nothing runs any more.
//
// Scripts      go out as EVALSHA; a server that does not know one gets its text, once a call.
// Repeating    A request whose outcome is unknown because a connection ended is sent again, and so
//              is one that a server could not take (below, `elsewhere`), until its deadline and
//              never after it. Every request here names what matters, so twice is as good as once.
// Answers      A reply is handed on when it is no error; reply_fault.hpp says what those mean. And
//                errc::unavailable      it was not done by the deadline
//                errc::unknown_outcome  it was sent, at least once, and not answered in time
//                errc::busy             too many requests wait: not done
//                errc::denied           the server does not let us in: not done
// Elsewhere    Of a server that cannot now the route is told (mistrust), and the request is tried
//              again with backoff.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "store/redis/redis_route.hpp"
#include "store/redis/reply_fault.hpp"
#include "store/redis/script_protocol.hpp"
#include "wire/resp/resp_message.hpp"

namespace trinco::detail {

// A call as it is sent, once made for all times that it is asked.
struct ready_call {
    script_call call;
    std::string command;  // by the script's name
};
[[nodiscard]] std::shared_ptr<const ready_call> make_ready(script_call call);

class script_runner {
public:
    // Both outlive it.
    script_runner(loop& on, redis_route& by);
    ~script_runner();
    script_runner(const script_runner&) = delete;
    script_runner& operator=(const script_runner&) = delete;

    // Not null.
    [[nodiscard]] op run(std::shared_ptr<const ready_call> call, deadline by,
                         completion<resp_reply> done);
    [[nodiscard]] op run(script_call call, deadline by, completion<resp_reply> done) {
        return run(make_ready(std::move(call)), by, std::move(done));
    }
    // A plain command; its keys are in the slot of `key`.
    [[nodiscard]] op run(std::string key, const std::vector<std::string>& words, deadline by,
                         completion<resp_reply> done);
    // What goes on also when nobody waits for it; `done` may be empty.
    void run_alone(script_call call, deadline by, completion<resp_reply> done = {});
    void run_alone(std::string key, const std::vector<std::string>& words, deadline by);

    // Why the server refused what was asked last, run_alone aside; empty when it answered.
    [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }
    // Whether one of them may have been carried out, because a connection ended under it.
    [[nodiscard]] bool in_doubt() const noexcept;
    // Requests without an answer: those of run, and those of run_alone.
    [[nodiscard]] std::size_t under_way() const noexcept { return runs_.size() - alone_; }
    [[nodiscard]] std::size_t alone() const noexcept { return alone_; }
    // Called, later, whenever the last one of run has got its answer, and when then those of
    // run_alone have, too. Empty: nobody.
    void when_idle(unique_function<void()> f) { idle_ = std::move(f); }

private:
    struct one;
    using id_t = std::uint64_t;

    [[nodiscard]] static std::unique_ptr<one> make(std::shared_ptr<const ready_call> call,
                                                   deadline by, completion<resp_reply> done);
    [[nodiscard]] static std::unique_ptr<one> make(std::string key,
                                                   const std::vector<std::string>& words,
                                                   deadline by, completion<resp_reply> done);
    id_t start(std::unique_ptr<one> r);
    void start_alone(std::unique_ptr<one> r);
    [[nodiscard]] op interest_in(id_t id);
    void send(id_t id);
    void answered(id_t id, std::error_code error, resp_reply reply);
    void refused(id_t id, const reply_fault& fault);
    void learn(id_t id);
    void mistrust_later(const std::string& key, const reply_fault& fault);
    void again(id_t id);
    void finish(id_t id, std::error_code error, resp_reply reply);
    void forget(id_t id);

    loop& on_;
    redis_route& route_;
    id_t next_ = 1;
    std::unordered_map<id_t, std::unique_ptr<one>> runs_;
    std::size_t alone_ = 0;                  // of these
    std::map<redis_script, deadline> told_;  // when a server was sent the text, last
    std::set<std::string> mistrusted_;       // keys whose server will be in the next turn
    std::string refusal_;
    unique_function<void()> idle_;
    // Ops find the runner by it as long as it lives.
    std::shared_ptr<script_runner*> self_ = std::make_shared<script_runner*>(this);
};

}  // namespace trinco::detail
