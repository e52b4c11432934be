// Breakers in the memory of one process: the record applied to a map. The reference for every other
// store, the store of programs that need no fleet, and the server of the simulator.
//
// A memory_breaker_server is the database; any number of memory_breakers, one per instance, speak
// to it, each on its own loop. Nothing waits: a request is carried out inside the call and its
// completion is posted, so an effect is unknown only to a caller that dropped its op.
//
// Threads  The server may be used from any thread; its mutex is held for one request at a time,
//          never while anybody's code runs. A memory_breakers follows the contract (its loop's
//          thread). Notices are posted to each subscriber's loop, in the order of the changes.
// Keys     A record that nobody refreshed for its time_to_live is gone, whether or not it was
//          removed yet. Each exchange looks at a few others and removes what has run out, so that a
//          server which is used for anything forgets everything else; inspect and size remove all.
// Bounds   Over 100,000 breakers a new one is `busy`, over 1,024 calls under way of one store
//          object another one is.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/breaker/record.hpp"
#include "store/breaker_store.hpp"

namespace trinco::detail {

class memory_breaker_server {
public:
    // The store's clock, microseconds since 1970; the system's when empty. Called under the mutex.
    explicit memory_breaker_server(unique_function<store_time()> clock = {});

    struct row {
        fleet_record record;
        store_time expires{0};
    };
    using rows = std::map<std::string, row, std::less<>>;

    // ---- for whoever plays the server's fate ----------------------------------------------------
    // What a dump would hold, and a restart from an older dump, or from nothing. Subscribers are
    // told new_server.
    [[nodiscard]] rows snapshot() const;
    void restore(rows from);
    void clear() { restore({}); }
    // Subscribers are told that messages were missed.
    void announce_gap();

    // Breakers that have not run out.
    [[nodiscard]] std::size_t size();
    // A copy of one record; an absent one when there is none.
    [[nodiscard]] fleet_record record_of(std::string_view breaker) const;

    // ---- for the stores -------------------------------------------------------------------------
    [[nodiscard]] verdict exchange(const breaker_identity& who, const news& n);
    [[nodiscard]] glance look(const look_request& q) const;
    [[nodiscard]] probe_reply probe(const breaker_identity& who, const probe_request& p);
    [[nodiscard]] view control(const control_request& c, std::error_code& error);
    [[nodiscard]] page inspect(std::string_view prefix, std::string_view from, std::size_t most);

    // A notice on its way holds its listener, and so does the listener's own call: it may end
    // itself.
    struct listener {
        unique_function<void(const notice&)> heard;
        bool ended = false;  // the loop's thread
    };
    // Until unsubscribe returns, notices are posted to the loop, which must outlive that.
    void subscribe(loop& on, std::shared_ptr<listener> to);
    void unsubscribe(const listener& to) noexcept;

private:
    // A record under the mutex: the stored one, or an absent one that keep() puts into the map.
    class access;

    [[nodiscard]] store_time now() const { return clock_(); }
    void sweep_some();
    void sweep_all();
    void publish(std::string_view breaker, const fleet_record& r, const effects& did);
    void post_to_all(const notice& n);

    struct subscription {
        loop* on;
        std::shared_ptr<listener> to;
    };

    mutable std::mutex mutex_;
    mutable unique_function<store_time()> clock_;
    rows rows_;
    std::string swept_up_to_;
    std::vector<subscription> subscriptions_;
};

class memory_breakers final : public breaker_store {
public:
    // The loop must outlive the store.
    memory_breakers(loop& on, std::shared_ptr<memory_breaker_server> server, breaker_identity who);
    ~memory_breakers() override;

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
    // Shared with what is posted, which may run after the store is gone.
    struct life {
        bool ended = false;
        std::size_t under_way = 0;
    };

    template <class T>
    [[nodiscard]] op complete(completion<T> done, std::error_code error, T answer);
    // An error that hinders any call now: too many under way, or a deadline that has passed.
    [[nodiscard]] std::error_code hindrance(deadline by);
    void end_subscription() noexcept;

    loop& loop_;
    std::shared_ptr<memory_breaker_server> server_;
    breaker_identity who_;
    std::shared_ptr<life> life_;
    std::shared_ptr<memory_breaker_server::listener> listener_;
};

}  // namespace trinco::detail
