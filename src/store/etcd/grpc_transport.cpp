#include "store/etcd/grpc_transport.hpp"

#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "store/etcd/grpc_call.hpp"
#include "store/etcd/grpc_credentials.hpp"
#include "store/etcd/grpc_logs.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr int message_most = 4 * 1024 * 1024;
constexpr std::size_t lanes = 3;

grpc::ChannelArguments arguments_of(const std::optional<tls_settings>& tls) {
    grpc::ChannelArguments of;
    of.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    of.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3'000);
    of.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);  // etcd takes it for an attack
    of.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);    // not limited
    of.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    of.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    of.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);  // in truth how long an attempt may take
    of.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, message_most);
    of.SetInt(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, message_most);
    // A probe of the bandwidth with each answer would cost as much as a small one does.
    of.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    of.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1'024 * 1'024);
    // Otherwise the channels to a member would share one connection.
    of.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // What may be repeated is decided above.
    of.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    of.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    of.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1'000);
    if (tls && !tls->server_name.empty()) of.SetSslTargetNameOverride(tls->server_name);
    return of;
}

class grpc_transport final : public transport {
public:
    grpc_transport(loop& on, std::vector<stream_address> members, std::optional<tls_settings> tls)
        : loop_(on),
          members_(std::move(members)),
          tls_(std::move(tls)),
          in_(std::make_unique<inside>(on, members_.size())) {}
    ~grpc_transport() override;

    [[nodiscard]] std::size_t endpoints() const noexcept override { return members_.size(); }
    [[nodiscard]] std::string name(std::size_t endpoint) const override {
        return text_of(members_[endpoint]);
    }
    [[nodiscard]] op call(destination to, const char* method, std::string request,
                          wire_metadata with, deadline by, on_answer done) override;
    [[nodiscard]] std::unique_ptr<wire_stream> open(destination to, const char* method,
                                                    wire_metadata with, on_message heard,
                                                    on_end ended) override;
    [[nodiscard]] bool connected(destination to) const override;
    void renew(destination to) override;
    [[nodiscard]] op stop(deadline by, completion<int> done) override;

private:
    // What belongs to gRPC, and is left alone in a child.
    struct inside {
        inside(loop& on, std::size_t members)
            : engine(std::make_shared<grpc_engine>(on)), channels(members * lanes) {}
        std::shared_ptr<grpc_engine> engine;
        std::vector<std::shared_ptr<grpc::Channel>> channels;
        std::vector<std::weak_ptr<grpc_call>> calls;      // some may be over
        std::vector<std::weak_ptr<grpc_stream>> streams;  // as here
    };
    struct stopping {
        completion<int> done;
        op limit;
    };

    [[nodiscard]] bool is_usable() const noexcept {
        return ::getpid() == owner_ && !in_->engine->is_closed();
    }
    [[nodiscard]] static std::size_t index(destination to) noexcept {
        return to.endpoint * lanes + static_cast<std::size_t>(to.by);
    }
    // Null when it cannot be made; then `wrong` says why.
    std::shared_ptr<grpc::Channel> channel(destination to, std::string& wrong);
    void close(unique_function<void()> ended);

    loop& loop_;
    const ::pid_t owner_ = ::getpid();
    const std::vector<stream_address> members_;
    const std::optional<tls_settings> tls_;
    std::unique_ptr<inside> in_;
};

// A list of those that may be over does not grow for ever.
template <class T>
void remember(std::vector<std::weak_ptr<T>>& all, const std::shared_ptr<T>& one) {
    if (all.size() == all.capacity()) {
        std::erase_if(all, [](const auto& w) { return w.expired(); });
    }
    all.push_back(one);
}

template <class T>
void cancel_all(std::vector<std::weak_ptr<T>>& all) {
    for (const auto& weak : std::exchange(all, {})) {
        if (const auto one = weak.lock()) one->cancel();
    }
}

class stream_handle final : public wire_stream {
public:
    stream_handle(std::shared_ptr<grpc_stream> s, ::pid_t owner)
        : stream_(std::move(s)), owner_(owner) {}
    ~stream_handle() override {
        if (::getpid() == owner_) {
            stream_->cancel();
        } else {
            (void)new std::shared_ptr<grpc_stream>(std::move(stream_));
        }
    }
    void send(std::string message) override {
        if (::getpid() == owner_) stream_->send(std::move(message));
    }

private:
    std::shared_ptr<grpc_stream> stream_;
    const ::pid_t owner_;
};

// Where nothing could be begun.
class no_stream final : public wire_stream {
public:
    explicit no_stream(op end) : end_(std::move(end)) {}
    void send(std::string) override {}

private:
    op end_;
};

grpc_transport::~grpc_transport() {
    if (::getpid() != owner_) {
        // Its threads are not here, and its locks may be held for ever.
        (void)in_.release();
        return;
    }
    close({});
    in_->engine->leave_loop(1s);
}

void grpc_transport::close(unique_function<void()> ended) {
    cancel_all(in_->calls);
    cancel_all(in_->streams);
    in_->engine->close(std::move(ended));
}

std::shared_ptr<grpc::Channel> grpc_transport::channel(destination to, std::string& wrong) {
    auto& slot = in_->channels[index(to)];
    if (!slot) {
        auto credentials = make_grpc_credentials(tls_);
        if (!credentials.made) {
            wrong = std::move(credentials.wrong);
            return nullptr;
        }
        slot = grpc::CreateCustomChannel("dns:" + name(to.endpoint), credentials.made,
                                         arguments_of(tls_));
    }
    return slot;
}

op grpc_transport::call(destination to, const char* method, std::string request, wire_metadata with,
                        deadline by, on_answer done) {
    if (!is_usable()) return {};
    std::string wrong;
    auto channel = this->channel(to, wrong);
    if (!channel) {
        return loop_.after(0s, [done = std::move(done), wrong]() mutable {
            done({wire_code::invalid_argument, wrong}, {});
        });
    }
    auto one = std::make_shared<grpc_call>();
    one->start(std::move(channel), method, request, with,
               std::max<boot_clock::duration>(by - loop_.now(), 0ns), *in_->engine,
               std::move(done));
    remember(in_->calls, one);
    return op([one = std::move(one), owner = owner_]() mutable {
        if (::getpid() == owner) {
            one->cancel();
        } else {
            (void)new std::shared_ptr<grpc_call>(std::move(one));
        }
    });
}

std::unique_ptr<wire_stream> grpc_transport::open(destination to, const char* method,
                                                  wire_metadata with, on_message heard,
                                                  on_end ended) {
    if (!is_usable()) return std::make_unique<no_stream>(op());
    std::string wrong;
    auto channel = this->channel(to, wrong);
    if (!channel) {
        return std::make_unique<no_stream>(
            loop_.after(0s, [ended = std::move(ended), wrong]() mutable {
                ended({wire_code::invalid_argument, wrong});
            }));
    }
    auto one = std::make_shared<grpc_stream>();
    one->start(std::move(channel), method, with, *in_->engine, std::move(heard), std::move(ended));
    remember(in_->streams, one);
    return std::make_unique<stream_handle>(std::move(one), owner_);
}

bool grpc_transport::connected(destination to) const {
    if (!is_usable()) return false;
    const auto& slot = in_->channels[index(to)];
    return slot && slot->GetState(false) == GRPC_CHANNEL_READY;
}

void grpc_transport::renew(destination to) {
    if (is_usable()) in_->channels[index(to)].reset();
}

op grpc_transport::stop(deadline by, completion<int> done) {
    if (::getpid() != owner_) return {};
    const auto end = std::make_shared<stopping>();
    end->done = std::move(done);
    const auto finish = [end] {
        end->limit.cancel();
        if (auto tell = std::exchange(end->done, nullptr)) tell({}, 0);
    };
    end->limit = loop_.at(by, finish);
    close(finish);
    return op([end] {
        end->done = nullptr;
        end->limit.cancel();
    });
}

}  // namespace

std::unique_ptr<transport> make_grpc_transport(loop& on, std::vector<stream_address> members,
                                               std::optional<tls_settings> tls) {
    quiet_grpc();
    return std::make_unique<grpc_transport>(on, std::move(members), std::move(tls));
}

}  // namespace trinco::detail::etcd
