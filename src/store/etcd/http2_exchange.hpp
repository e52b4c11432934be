// One call or stream on a connection: what is asked, and what has come of its answer. For http2_*
// only. The loop's thread.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/etcd/etcd_transport.hpp"
#include "wire/grpc/grpc_answer.hpp"
#include "wire/http2/http2_client.hpp"

namespace trinco::detail::etcd {

constexpr std::size_t message_most = 4 * 1024 * 1024;

class http2_exchange final : public http2_stream {
public:
    // What an answer changes is told to it, since nothing may be answered there and then.
    class owner {
    public:
        virtual void has_news(http2_exchange& of) = 0;
        // Whether the peer has answered as one that speaks gRPC; told when it does.
        virtual void spoke_grpc() = 0;
        [[nodiscard]] virtual bool speaks_grpc() const noexcept = 0;

    protected:
        ~owner() = default;
    };

    // A call.
    http2_exchange(const char* method, wire_metadata with, std::string request, deadline by,
                   transport::on_answer done);
    // A stream.
    http2_exchange(const char* method, wire_metadata with, transport::on_message heard,
                   transport::on_end ended);

    [[nodiscard]] const char* method() const noexcept { return method_; }
    [[nodiscard]] const wire_metadata& metadata() const noexcept { return with_; }
    [[nodiscard]] bool is_call() const noexcept { return by_.has_value(); }
    [[nodiscard]] const std::optional<deadline>& by() const noexcept { return by_; }
    void belongs_to(owner* one) noexcept { owner_ = one; }

    // It ends so, unless it has ended already.
    void end(wire_status how);
    [[nodiscard]] bool has_ended() const noexcept { return over_.has_value(); }
    // Whoever asked wants to hear nothing more.
    void forget();
    [[nodiscard]] bool is_wanted() const noexcept { return is_wanted_; }
    // Answers with what has come. Whoever is told may forget it meanwhile, and destroy its owner.
    void tell();

    // ---- of http2_stream ----------------------------------------------------------------------
    void on_field(std::string_view name, std::string_view value) override;
    void on_fields_end() override;
    void on_data(std::string_view bytes) override;
    void on_end(http2_end how) override;

    // ---- its connection's ---------------------------------------------------------------------
    std::list<std::shared_ptr<http2_exchange>>::iterator place;
    bool is_open = false;             // whether it has a place
    bool is_due = false;              // it is to tell something
    bool is_begun = false;            // the connection's client knows it
    std::vector<std::string> unsent;  // before that
    op limit;

private:
    [[nodiscard]] wire_status status_of(http2_end how);

    const char* const method_;
    const wire_metadata with_;
    const std::optional<deadline> by_;  // of a call
    transport::on_answer done_;
    transport::on_message heard_;
    transport::on_end ended_;
    bool is_wanted_ = true;
    owner* owner_ = nullptr;
    grpc_answer answer_{message_most};
    std::vector<std::string> messages_;  // not told yet
    std::optional<wire_status> over_;
};

}  // namespace trinco::detail::etcd
