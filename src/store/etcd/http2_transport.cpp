#include "store/etcd/http2_transport.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

#include "net/socket_factory.hpp"
#include "net/tls_factory.hpp"
#include "store/etcd/http2_connection.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t lanes = 3;

class http2_transport final : public transport {
public:
    http2_transport(loop& on, std::unique_ptr<stream_factory> streams,
                    const std::vector<stream_address>& members,
                    const std::optional<tls_settings>& tls);
    ~http2_transport() override;

    [[nodiscard]] std::size_t endpoints() const noexcept override { return names_.size(); }
    [[nodiscard]] std::string name(std::size_t endpoint) const override { return names_[endpoint]; }
    [[nodiscard]] op call(destination to, const char* method, std::string request,
                          wire_metadata with, deadline by, on_answer done) override;
    [[nodiscard]] std::unique_ptr<wire_stream> open(destination to, const char* method,
                                                    wire_metadata with, on_message heard,
                                                    on_end ended) override;
    [[nodiscard]] bool connected(destination to) const override;
    void renew(destination to) override;
    [[nodiscard]] op stop(deadline by, completion<int> done) override;

private:
    using connection = std::shared_ptr<http2_connection>;
    struct way {
        std::shared_ptr<http2_place> to;
        connection now;  // null: none yet
    };
    // What is left alone in a child.
    struct inside {
        std::unique_ptr<stream_factory> streams;
        std::vector<way> ways;        // to each member, one a lane
        std::vector<connection> all;  // some may be over
    };

    [[nodiscard]] bool is_usable() const noexcept { return ::getpid() == owner_ && !stopped_; }
    [[nodiscard]] way& way_to(destination to) const {
        return in_->ways[to.endpoint * lanes + static_cast<std::size_t>(to.by)];
    }
    [[nodiscard]] connection& connection_to(destination to);
    void end_all();

    loop& loop_;
    const ::pid_t owner_ = ::getpid();
    bool stopped_ = false;
    std::vector<std::string> names_;
    std::unique_ptr<inside> in_;
};

// An exchange in the hands of whoever asked for it.
class interest {
public:
    interest(const std::shared_ptr<http2_connection>& on, std::shared_ptr<http2_exchange> what,
             ::pid_t owner)
        : on_(on), what_(std::move(what)), owner_(owner) {}
    interest(interest&&) noexcept = default;
    interest& operator=(interest&&) = delete;

    void send(std::string message) {
        const auto on = ::getpid() == owner_ ? on_.lock() : nullptr;
        if (on) on->send(*what_, std::move(message));
    }
    void drop() {
        if (::getpid() != owner_) {
            (void)new std::shared_ptr<http2_exchange>(std::move(what_));
        } else if (const auto on = on_.lock()) {
            on->drop(*what_);
        }
    }

private:
    std::weak_ptr<http2_connection> on_;
    std::shared_ptr<http2_exchange> what_;
    ::pid_t owner_;
};

class stream_handle final : public wire_stream {
public:
    explicit stream_handle(interest of) : of_(std::move(of)) {}
    ~stream_handle() override { of_.drop(); }
    void send(std::string message) override { of_.send(std::move(message)); }

private:
    interest of_;
};

// Where nothing could be begun.
class no_stream final : public wire_stream {
    void send(std::string) override {}
};

http2_transport::http2_transport(loop& on, std::unique_ptr<stream_factory> streams,
                                 const std::vector<stream_address>& members,
                                 const std::optional<tls_settings>& tls)
    : loop_(on), in_(std::make_unique<inside>()) {
    in_->streams = std::move(streams);
    for (const auto& member : members) {
        names_.push_back(text_of(member));
        for (std::size_t i = 0; i < lanes; ++i) {
            auto to = std::make_shared<http2_place>();
            to->address = member;
            to->address.tls = tls;
            if (tls) to->address.tls->protocol = "h2";
            to->authority = tls && !tls->server_name.empty() ? tls->server_name : names_.back();
            in_->ways.push_back({std::move(to), nullptr});
        }
    }
}

http2_transport::~http2_transport() {
    if (::getpid() != owner_) {
        // The thread that used it is not here, and may have been in the midst of something.
        (void)in_.release();
        return;
    }
    end_all();
}

void http2_transport::end_all() {
    stopped_ = true;
    for (const auto& one : std::exchange(in_->all, {})) one->end();
    for (auto& one : in_->ways) one.now = nullptr;
}

http2_transport::connection& http2_transport::connection_to(destination to) {
    auto& slot = way_to(to);
    if (slot.now && slot.now->takes_more()) return slot.now;
    std::erase_if(in_->all, [](const auto& one) { return one->is_done(); });
    slot.now = std::make_shared<http2_connection>(loop_, slot.to);
    in_->all.push_back(slot.now);
    slot.now->connect(*in_->streams);
    return slot.now;
}

op http2_transport::call(destination to, const char* method, std::string request,
                         wire_metadata with, deadline by, on_answer done) {
    if (!is_usable()) return {};
    if (request.size() > message_most) {
        return loop_.after(0s, [done = std::move(done)]() mutable {
            done({wire_code::resource_exhausted, "the request is larger than 4 MiB",
                  wire_cause::not_sent},
                 {});
        });
    }
    const auto one = std::make_shared<http2_exchange>(method, std::move(with), std::move(request),
                                                      by, std::move(done));
    const auto& on = connection_to(to);
    interest mine(on, one, owner_);
    on->begin(one);
    return op([mine = std::move(mine)]() mutable { mine.drop(); });
}

std::unique_ptr<wire_stream> http2_transport::open(destination to, const char* method,
                                                   wire_metadata with, on_message heard,
                                                   on_end ended) {
    if (!is_usable()) return std::make_unique<no_stream>();
    const auto one = std::make_shared<http2_exchange>(method, std::move(with), std::move(heard),
                                                      std::move(ended));
    const auto& on = connection_to(to);
    interest mine(on, one, owner_);
    on->begin(one);
    return std::make_unique<stream_handle>(std::move(mine));
}

bool http2_transport::connected(destination to) const {
    if (!is_usable()) return false;
    const auto& now = way_to(to).now;
    return now && now->is_up();
}

void http2_transport::renew(destination to) {
    if (!is_usable()) return;
    if (const auto old = std::exchange(way_to(to).now, nullptr)) old->retire();
}

op http2_transport::stop(deadline, completion<int> done) {
    if (::getpid() != owner_) return {};
    end_all();
    return loop_.after(0s, [done = std::move(done)]() mutable { done({}, 0); });
}

}  // namespace

std::unique_ptr<transport> make_http2_transport(event_loop& on, std::vector<stream_address> members,
                                                std::optional<tls_settings> tls) {
    return make_http2_transport(on, make_tls_factory(on, make_socket_factory(on)), members, tls);
}

std::unique_ptr<transport> make_http2_transport(loop& on, std::unique_ptr<stream_factory> streams,
                                                const std::vector<stream_address>& members,
                                                const std::optional<tls_settings>& tls) {
    return std::make_unique<http2_transport>(on, std::move(streams), members, tls);
}

}  // namespace trinco::detail::etcd
