// A lock_store on the far side of a simulated network: what a client of a server sees when requests
// and replies are lost, late, doubled and overtaken, and connections break.
//
// It keeps the contract's promises as a real client does: every call ends by its deadline, as
// unknown_outcome when it was sent and as unavailable when it surely was not; and what has no
// deadline (await, on_gone, observe) is asked for again until it is answered, so that a lost
// message delays it and no more. Requests that were sent go on without the client: dropping an op,
// destroying the store or killing the node takes back nothing.
//
// The inner store lives on the server's loop and must outlive the world's events.
#pragma once

#include <map>
#include <memory>

#include "sim/network.hpp"
#include "sim/world.hpp"
#include "store/lock_store.hpp"

namespace trinco::sim {

// The server's part, shared by all its clients.
class lock_service : public std::enable_shared_from_this<lock_service> {
public:
    lock_service(network& net, node& at, detail::lock_store& inner)
        : net_(net), at_(at), inner_(inner) {}
    // What is asked of the server and goes on there, and nowhere else.
    [[nodiscard]] node& at() const noexcept { return at_; }
    [[nodiscard]] network& net() const noexcept { return net_; }
    [[nodiscard]] detail::lock_store& inner() const noexcept { return inner_; }

    // Runs one request; `start` begins it at the inner store.
    void run(unique_function<op(std::uint64_t)> start);
    void finished(std::uint64_t request) { running_.erase(request); }

    // Keeps a stream that was asked for (again), until it is dropped, or its client falls silent.
    // True when it is new.
    bool subscribe(std::uint64_t stream, unique_function<op()> start);
    void drop(std::uint64_t stream) { streams_.erase(stream); }
    [[nodiscard]] std::uint64_t next_number() noexcept { return ++numbers_; }

private:
    struct stream_state {
        op inner;
        op silence;
    };
    network& net_;
    node& at_;
    detail::lock_store& inner_;
    std::uint64_t numbers_ = 0;  // of requests, streams and events
    std::map<std::uint64_t, op> running_;
    std::map<std::uint64_t, stream_state> streams_;
};

class lossy_locks final : public detail::lock_store {
public:
    lossy_locks(node& client, std::shared_ptr<lock_service> service);
    ~lossy_locks() override;
    lossy_locks(const lossy_locks&) = delete;
    lossy_locks& operator=(const lossy_locks&) = delete;

    [[nodiscard]] const detail::lock_traits& traits() const override;
    [[nodiscard]] op open(std::chrono::seconds ttl, std::string_view label, detail::deadline by,
                          detail::completion<detail::lease> done) override;
    [[nodiscard]] op renew(std::string_view lease, detail::deadline by,
                           detail::completion<std::chrono::seconds> done) override;
    [[nodiscard]] op revoke(std::string_view lease, detail::deadline by,
                            detail::completion<detail::ended_claims> done) override;
    [[nodiscard]] op owned(std::string_view lease, detail::deadline by,
                           detail::completion<std::vector<detail::claim_id>> done) override;
    [[nodiscard]] op enter(detail::claim what, detail::deadline by,
                           detail::completion<detail::place> done) override;
    [[nodiscard]] op await(std::string_view lease, detail::claim_id id,
                           unique_function<void(detail::place)> moved,
                           detail::completion<detail::grant> done) override;
    [[nodiscard]] op on_gone(std::string_view lease, detail::claim_id id,
                             unique_function<void(std::error_code)> gone) override;
    [[nodiscard]] op verify(std::string_view lease, detail::claim_id id, detail::deadline by,
                            detail::completion<detail::grant> done) override;
    [[nodiscard]] op turns(std::string_view lease, detail::claim_id id, detail::deadline by,
                           detail::completion<std::vector<bool>> done) override;
    [[nodiscard]] op publish(std::string_view lease, detail::claim_id id, std::string_view info,
                             detail::deadline by, detail::completion<int> done) override;
    [[nodiscard]] op leave(std::string_view lease, detail::claim_id id, detail::deadline by,
                           detail::completion<int> done) override;
    [[nodiscard]] op write(std::string_view lease, std::optional<detail::claim_id> guard,
                           std::span<const detail::change> changes, std::chrono::seconds keep,
                           detail::deadline by, detail::completion<std::uint64_t> done) override;
    [[nodiscard]] op read(std::string_view key, detail::deadline by,
                          detail::completion<std::optional<detail::record>> done) override;
    [[nodiscard]] op scan(std::string_view prefix, std::string_view from, std::size_t rows,
                          detail::deadline by, detail::completion<detail::records> done) override;
    [[nodiscard]] op list(std::string_view prefix, std::string_view from, std::size_t rows,
                          detail::deadline by, detail::completion<detail::entries> done) override;
    [[nodiscard]] op evict(const detail::entry& seen, bool now, std::string_view who,
                           std::string_view why, detail::deadline by,
                           detail::completion<int> done) override;
    [[nodiscard]] op observe(std::string_view name,
                             unique_function<void(std::optional<detail::entry>)> seen) override;
    [[nodiscard]] op stop(detail::deadline by, detail::completion<int> done) override;

private:
    struct pending_call;
    template <class T>
    struct call_state;
    struct stream;
    using calls = std::map<std::uint64_t, std::shared_ptr<pending_call>>;

    template <class T, class Start>
    op call(detail::deadline by, detail::completion<T> done, Start start);
    op open_stream(std::shared_ptr<stream> s);
    void broken();

    node& client_;
    const std::shared_ptr<lock_service> service_;
    const std::shared_ptr<calls> calls_;  // in the order of sending
    boot_clock::time_point connected_;    // again, after a break
    op breaks_;
};

}  // namespace trinco::sim
