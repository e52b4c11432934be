#include "apps/trinco/doctor/server_talk.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::program::doctor {

using namespace std::chrono_literals;
using trinco::detail::boot_clock;
using trinco::detail::event_loop;
using trinco::detail::redis_link;
using trinco::detail::redis_link_event;
using trinco::detail::redis_refusal;
using trinco::detail::resp_reply;
using trinco::detail::stream_address;
using trinco::detail::stream_factory;

namespace {

constexpr auto moment = 500ms;  // for the turn of the loop in which an answer comes

// One value on its way from the loop's thread; whoever waits may give up before it comes.
template <class T>
class mailbox {
public:
    void put(T value) {
        const std::lock_guard hold(m_);
        if (value_) return;
        value_ = std::move(value);
        came_.notify_all();
    }
    [[nodiscard]] std::optional<T> wait(std::chrono::milliseconds limit) {
        std::unique_lock hold(m_);
        came_.wait_for(hold, limit, [&] { return value_.has_value(); });
        return value_;
    }

private:
    std::mutex m_;
    std::condition_variable came_;
    std::optional<T> value_;
};

}  // namespace

knock knock_at(event_loop& on, stream_factory& by, stream_address where,
               std::chrono::milliseconds limit) {
    where.tls.reset();
    const auto box = std::make_shared<mailbox<knock>>();
    const auto interest = std::make_shared<trinco::detail::op>();
    on.post([&on, &by, where, limit, box, interest] {
        const auto began = boot_clock::now();
        *interest = by.connect(where, on.now() + limit, [box, began](auto error, auto) {
            box->put({error, boot_clock::now() - began});
        });
    });
    const auto came = box->wait(limit + moment);
    static_cast<void>(trinco::detail::run_and_wait(on, 2s, [interest] { interest->cancel(); }));
    return came.value_or(knock{std::make_error_code(std::errc::timed_out), limit});
}

struct server_talk::state {
    explicit state(event_loop& loop) : on(loop) {}
    event_loop& on;
    std::unique_ptr<redis_link> link;  // the loop's thread only
    mailbox<redis_refusal> first;      // how the first attempt ended; no error: well
};

server_talk::server_talk(event_loop& on, stream_factory& streams, stream_address where,
                         std::vector<trinco::detail::redis_step> steps)
    : state_(std::make_shared<state>(on)) {
    trinco::detail::redis_link_options how;
    how.steps = std::move(steps);
    how.connect_within = 2s;
    how.stuck_after = 2s;
    const auto begin = [s = state_, &streams, where = std::move(where), how]() mutable {
        s->link = std::make_unique<redis_link>(
            s->on, streams, std::move(where), std::move(how),
            [s](const redis_link_event& e) { s->first.put(e.up ? redis_refusal{} : e.reason); });
    };
    static_cast<void>(trinco::detail::run_and_wait(on, 2s, begin));
}

server_talk::~server_talk() {
    static_cast<void>(
        trinco::detail::run_and_wait(state_->on, 2s, [s = state_] { s->link.reset(); }));
}

std::optional<redis_refusal> server_talk::reach(milliseconds limit) {
    const auto came = state_->first.wait(limit);
    if (!came) {
        return redis_refusal{std::make_error_code(std::errc::timed_out),
                             "the server did not let us in in time"};
    }
    if (!came->error && came->why.empty()) return std::nullopt;
    return came;
}

told server_talk::ask(const std::vector<std::string>& words, milliseconds limit) {
    struct question {
        trinco::detail::op interest;
        mailbox<told> box;
    };
    const auto q = std::make_shared<question>();
    state_->on.post([s = state_, q, limit, command = trinco::detail::resp_command(words)] {
        const auto began = boot_clock::now();
        if (!s->link) return q->box.put({make_error_code(errc::shut_down), {}, 0ns});
        q->interest = s->link->request(
            command, began + limit, [q, began](std::error_code error, resp_reply reply) {
                const auto over = std::move(q->interest);
                q->box.put({error, std::move(reply), boot_clock::now() - began});
            });
    });
    auto came = q->box.wait(limit + moment);
    if (came) return std::move(*came);
    return {make_error_code(errc::unknown_outcome), {}, limit};
}

}  // namespace trinco::program::doctor
