// Breakers of all processes of a machine: record::apply on one row a breaker.
//
// An exchange is one transaction, together with what else waits at that moment. Notices are made
// by the listener itself: a row keeps the number of the last change that others are told of, and
// whoever changed one rings at all who listen, which then read what changed since they looked last.
// So a ring that is lost delays a notice (by reread_every at most) and loses none, and several
// changes of one breaker may be told as one.
//
// A row that is not a record (damage, or another version's) is an error of that breaker,
// `unavailable`, until an operator's `forget` replaces it.
//
// Bounds   100,000 breakers a file: over it a new one is `busy`.
// Keys     A record that nobody refreshed for its time_to_live is gone; each exchange removes a few
//          of those.
#pragma once

#include <memory>
#include <string>

#include "store/breaker_store.hpp"
#include "store/local/local_calls.hpp"
#include "store/local/local_worker.hpp"

namespace trinco::detail {

class local_breaker_rows;

class local_breakers final : public breaker_store {
public:
    // The loop must outlive the store.
    local_breakers(loop& on, std::shared_ptr<local_worker> worker, std::string name_space,
                   breaker_identity who);
    ~local_breakers() override;

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
    [[nodiscard]] op stop(deadline by, completion<int> done) override;

private:
    // The loop's side of a subscription: notices find it as long as it has not ended.
    struct listener {
        unique_function<void(const notice&)> heard;
        bool ended = false;
    };
    class watcher;

    void end_subscription() noexcept;

    loop& loop_;
    std::shared_ptr<local_worker> worker_;
    std::shared_ptr<local_outlet> outlet_;
    std::shared_ptr<local_calls> calls_;
    std::shared_ptr<local_breaker_rows> rows_;  // the worker's thread
    breaker_identity who_;
    std::shared_ptr<listener> listener_;
    std::shared_ptr<watcher> watcher_;
};

}  // namespace trinco::detail
