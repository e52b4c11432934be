// One connection to a member, over which calls and streams go, from the attempt to make it to its
// end. For http2_* only. The loop's thread; what is asked for is answered later.
//
// Beginning    What is asked for goes out with the first bytes, before the server has said
//              anything. Attempts end after 2 s, when the server has not said what HTTP/2 begins
//              with.
// Life         While something is under way, a peer that was silent for 10 s is asked for a sign of
//              life, and given up when none has come 3 s later. One that complains of it is asked
//              half as often.
// The end      What is under way is told that nobody knows what became of it, and what was not sent
//              as a whole, or not looked at by the server's own word, that it was not carried out.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "net/stream_factory.hpp"
#include "store/etcd/http2_exchange.hpp"

namespace trinco::detail::etcd {

// Where connections lead, one after another.
struct http2_place {
    stream_address address;
    std::string authority;
    boot_clock::duration ping_after = std::chrono::seconds(10);
};

class http2_connection final : public std::enable_shared_from_this<http2_connection>,
                               private http2_exchange::owner {
public:
    http2_connection(loop& on, std::shared_ptr<http2_place> to)
        : loop_(on), place_(std::move(to)) {}
    http2_connection(const http2_connection&) = delete;
    http2_connection& operator=(const http2_connection&) = delete;
    ~http2_connection() { end(); }

    void connect(stream_factory& by);
    void begin(std::shared_ptr<http2_exchange> one);
    void send(http2_exchange& on, std::string message);
    // Nobody wants to hear of it any more.
    void drop(http2_exchange& one);
    // Takes nothing new, and ends with the last of what is under way.
    void retire();
    // Now, and silently.
    void end() noexcept;

    [[nodiscard]] bool takes_more() const noexcept { return in_ != state::over && !leaves_; }
    [[nodiscard]] bool is_up() const noexcept {
        return in_ == state::connected && !leaves_ && client_->is_ready();
    }
    // It has ended, and told everybody.
    [[nodiscard]] bool is_done() const noexcept { return in_ == state::over && due_.empty(); }

private:
    enum class state : std::uint8_t { connecting, connected, over };

    void has_news(http2_exchange& of) override;
    void spoke_grpc() override { speaks_grpc_ = true; }
    [[nodiscard]] bool speaks_grpc() const noexcept override { return speaks_grpc_; }
    void connected(std::unique_ptr<byte_stream> stream);
    void submit(http2_exchange& one);
    void read();
    void arrived(std::error_code error, std::string_view bytes);
    void flush();
    void written(std::error_code error);
    void tell();
    void see_to_the_end();
    void fail(const wire_status& how);
    void hang_up() noexcept;
    void late(http2_exchange& one);
    void watch_life();
    void see_life();
    void see_sign();

    loop& loop_;
    const std::shared_ptr<http2_place> place_;
    state in_ = state::connecting;
    bool leaves_ = false;  // takes nothing new
    bool writes_ = false;  // a write is pending
    bool corked_ = false;  // more may come in this turn, and goes out with it
    bool tells_soon_ = false;
    bool silent_ = false;  // nothing is told any more
    bool is_calmed_ = false;
    bool speaks_grpc_ = false;  // as it has shown
    std::unique_ptr<byte_stream> stream_;
    std::unique_ptr<http2_client> client_;
    std::list<std::shared_ptr<http2_exchange>> open_;
    std::vector<std::shared_ptr<http2_exchange>> due_;  // have something to tell
    deadline heard_{};
    deadline busy_since_{};
    deadline pinged_{};
    bool watches_life_ = false;
    op connecting_;
    op limit_;  // of the attempt
    op reading_;
    op writing_;  // or, when that failed, what reading may tell of it
    op life_;
};

}  // namespace trinco::detail::etcd
