// The parts of redis_link, for its own file only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "store/redis/redis_link.hpp"
#include "wire/resp/resp_reader.hpp"

namespace trinco::detail {

struct link_entry {
    std::string bytes;            // until it is sent
    completion<resp_reply> done;  // empty: nobody waits (any more), but a reply may be due
    op timer;
    boot_clock::time_point sent{};
};

struct redis_link::impl : std::enable_shared_from_this<redis_link::impl> {
    using entry = link_entry;
    using entry_ptr = std::shared_ptr<entry>;
    enum class state : std::uint8_t { idle, waiting, connecting, greeting, up };

    impl(loop& l, stream_factory& s, stream_address a, redis_link_options o, on_event c,
         on_message h)
        : on(l),
          may_wait(std::move(o.may_wait)),
          streams(s),
          to(std::move(a)),
          options(std::move(o)),
          changed(std::move(c)),
          heard(std::move(h)),
          reader(options.limits) {}

    loop& on;

    // What a message touches that may wait comes first, in as few lines of the cache as can be.
    state now_in = state::idle;
    bool gone = false;             // the link was destroyed
    bool suspected = false;        // of being stuck, for the first time
    bool amid = false;             // a reply has come in part
    std::uint64_t connection = 0;  // its number: what belongs to an earlier one is of no interest
    boot_clock::time_point last_heard{};
    link_traffic traffic;
    std::function<bool(std::string_view)> may_wait;  // of the options
    std::string held;                                // messages that may wait
    std::deque<entry_ptr> awaited;                   // sent, in the order of their replies
    op held_timer;

    stream_factory& streams;
    stream_address to;
    const redis_link_options options;
    on_event changed;
    on_message heard;

    bool was_up = false;             // ever
    bool denied = false;             // by the last attempt
    std::uint32_t attempt = 0;       // in a row without success
    boot_clock::time_point began{};  // the last attempt
    boot_clock::time_point up_since{};

    std::deque<entry_ptr> queued;  // not sent; those without bytes are dead
    std::size_t queued_dead = 0;
    std::size_t queued_bytes = 0;
    bool flushing = false;    // a flush is on its way
    std::size_t failing = 0;  // requests that may have been carried out, who asked is about to hear
    bool writing = false;
    boot_clock::time_point pinged{};

    std::unique_ptr<byte_stream> stream;
    resp_reader reader;
    op find_op;
    op connect_op;
    op connect_timer;
    op admit_op;
    op retry_timer;
    op read_op;
    op write_op;
    op stuck_timer;
    op ping_timer;

    // Runs later, unless the link is gone by then.
    template <class F>
    void later(F f) {
        on.post([weak = weak_from_this(), f = std::move(f)]() mutable {
            if (const auto self = weak.lock(); self && !self->gone) f(*self);
        });
    }

    op request(std::string command, deadline by, completion<resp_reply> done);
    void overdue(entry& e);
    void drop(entry& e);
    void forget(entry& e);
    void fail_later(std::deque<entry_ptr> entries, std::error_code error);

    void connect();
    void dial();
    void demand();
    void retry_in(boot_clock::duration wait);
    void greet();
    void next_step(std::size_t done, const resp_reply& reply);
    void be_admitted();
    void is_up();
    void broken(redis_refusal reason);
    void tell(redis_link_event event);

    void flush_later();
    void flush();
    void write(std::string bytes);
    void read();
    void ended(std::error_code error);
    void came(std::string_view bytes);
    [[nodiscard]] bool hold(std::string_view bytes);
    void digest_held();
    void digest(std::string_view bytes);
    void answered(resp_reply reply);
    void watch();
    void look();
    void ping_later();
    void ping();
    void hang_up();
    void close();
};

}  // namespace trinco::detail
