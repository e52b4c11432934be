// The fleet's breakers in Redis: each call is a script on the server that holds the record.
//
// Exchange    A pipeline of one script a breaker. An element's error is its own, unless no element
//             that was sent got an answer because of the server (unavailable, unknown_outcome,
//             denied, busy): then it is the call's.
// Errors      See script_runner.hpp; and not_supported where a later version of this library has
//             written the record, conflict where something else lives under its key.
// Listing     The index of a namespace has a slot of its own in a cluster: names are put into it
//             beside the calls, after the first exchange of a breaker and again from time to time.
//             It may live an eighth longer than the records. What the index answers says nothing
//             about the calls: a name that cannot be put in is tried again after 5 s at the
//             earliest, 64 at a time. inspect takes names out whose record is gone; one that comes
//             back at this moment is listed again within a minute.
// Bounds      Over 1,024 calls under way of one store object another one is `busy`.
// Stopping    waits for the calls, and for names on their way into the index 250 ms at most.
// Notices     See redis_subscriber.hpp. Nothing is listened to before the first subscribe.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/breaker_store.hpp"
#include "store/redis/redis_route.hpp"
#include "store/redis/redis_subscriber.hpp"
#include "store/redis/script_runner.hpp"

namespace trinco::detail {

class redis_breakers final : public breaker_store {
public:
    // Kept as long as the route, whose parts it may own.
    using make_route = unique_function<std::unique_ptr<redis_route>(redis_route::on_event)>;

    // The loop must outlive the store. Begins to connect.
    redis_breakers(loop& on, make_route make, std::string name_space, breaker_identity who,
                   unsigned database = 0);
    ~redis_breakers() override;

    [[nodiscard]] op exchange(std::span<const news> batch, deadline by,
                              completion<std::vector<verdict>> done) override;
    [[nodiscard]] op look(const look_request& request, deadline by,
                          completion<glance> done) override;
    [[nodiscard]] op probe(const probe_request& request, deadline by,
                           completion<probe_reply> done) override;
    [[nodiscard]] op control(const control_request& request, deadline by,
                             completion<view> done) override;
    [[nodiscard]] op inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                             deadline by, completion<page> done) override;
    [[nodiscard]] op subscribe(unique_function<void(const notice&)> on_notice) override;
    void foretell(unique_function<bool(const opening&)> on_opening) override;
    [[nodiscard]] op stop(deadline by, completion<int> done) override;
    [[nodiscard]] store_traffic traffic() const override;
    [[nodiscard]] std::string trouble() const override;
    [[nodiscard]] store_standing standing() const override;
    [[nodiscard]] bool in_doubt() const override { return scripts_.in_doubt() || route_->awaits(); }

    [[nodiscard]] redis_route& route() noexcept { return *route_; }
    // Whether the channel is listened to.
    [[nodiscard]] bool hears() const noexcept { return notices_.hears(); }

private:
    struct batch;
    struct listing {
        deadline again{};  // put it into the index anew
        deadline until{};  // the index lives
    };

    // Answers in a later turn, without asking the server.
    template <class T>
    [[nodiscard]] op answer(std::error_code error, completion<T> done);
    // One script about one breaker, read by `parse`; null: the request is invalid.
    template <class T, class Parse>
    [[nodiscard]] op ask(std::error_code hindrance, std::shared_ptr<const ready_call> call,
                         const std::string& breaker, deadline by, completion<T> done, Parse parse);
    [[nodiscard]] std::shared_ptr<const ready_call> call_of_look(const look_request& asked);
    [[nodiscard]] std::error_code hindrance(deadline by, std::string_view breaker);
    void element_answered(batch& of, std::size_t at, std::error_code error,
                          const resp_reply& reply);
    void learn(const std::string& breaker, bool published, std::chrono::milliseconds lives);
    void list(const std::string& breaker, std::chrono::milliseconds lives);
    void route_changed(const route_event& e);
    void calls_ended();
    void stopped();

    loop& loop_;
    const std::string name_space_;
    const breaker_identity who_;
    const unsigned database_;
    redis_subscriber notices_;
    make_route make_;
    std::unique_ptr<redis_route> route_;
    script_runner scripts_;
    // The last look, at what, and what of its view is sent: strict calls ask the same again and
    // again.
    std::string looked_at_;
    std::array<std::uint64_t, 4> looked_{};
    std::shared_ptr<const ready_call> look_;
    std::unordered_map<std::string, listing> listed_;
    bool listening_ = false;
    unique_function<bool(const opening&)> on_opening_;
    std::string down_;  // why there is no way to a server; empty when there is
    std::shared_ptr<completion<int>> stopping_;
    deadline stop_by_{};
    op stop_timer_;
    std::shared_ptr<int> life_ = std::make_shared<int>(0);
};

}  // namespace trinco::detail
