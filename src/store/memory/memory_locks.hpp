// A lock_store over a memory_lock_server: the waiting, the loop, the timers. Several stores, each
// on a loop of its own, share one server.
//
// Every call is applied at once and answered in a later turn, so it never passes its deadline;
// nothing is ever unknown. Each store keeps a timer at the server's next expiry while its loop
// lives, so that leases end and waiters advance without anybody calling.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "store/lock_store.hpp"
#include "store/memory/memory_lock_server.hpp"

namespace trinco::detail {

class memory_locks : public lock_store {
public:
    // The loop must outlive the store.
    memory_locks(loop& on, std::shared_ptr<memory_lock_server> server);
    ~memory_locks() override;
    memory_locks(const memory_locks&) = delete;
    memory_locks& operator=(const memory_locks&) = delete;

    [[nodiscard]] const lock_traits& traits() const override;
    [[nodiscard]] op open(std::chrono::seconds ttl, std::string_view label, deadline by,
                          completion<lease> done) override;
    [[nodiscard]] op renew(std::string_view lease, deadline by,
                           completion<std::chrono::seconds> done) override;
    [[nodiscard]] op revoke(std::string_view lease, deadline by,
                            completion<ended_claims> done) override;
    [[nodiscard]] op owned(std::string_view lease, deadline by,
                           completion<std::vector<claim_id>> done) override;
    [[nodiscard]] op enter(claim what, deadline by, completion<place> done) override;
    [[nodiscard]] op await(std::string_view lease, claim_id id, unique_function<void(place)> moved,
                           completion<grant> done) override;
    [[nodiscard]] op on_gone(std::string_view lease, claim_id id,
                             unique_function<void(std::error_code)> gone) override;
    [[nodiscard]] op verify(std::string_view lease, claim_id id, deadline by,
                            completion<grant> done) override;
    [[nodiscard]] op turns(std::string_view lease, claim_id id, deadline by,
                           completion<std::vector<bool>> done) override;
    [[nodiscard]] op publish(std::string_view lease, claim_id id, std::string_view info,
                             deadline by, completion<int> done) override;
    [[nodiscard]] op leave(std::string_view lease, claim_id id, deadline by,
                           completion<int> done) override;
    [[nodiscard]] op write(std::string_view lease, std::optional<claim_id> guard,
                           std::span<const change> changes, std::chrono::seconds keep, deadline by,
                           completion<std::uint64_t> done) override;
    [[nodiscard]] op read(std::string_view key, deadline by,
                          completion<std::optional<record>> done) override;
    [[nodiscard]] op scan(std::string_view prefix, std::string_view from, std::size_t rows,
                          deadline by, completion<records> done) override;
    [[nodiscard]] op list(std::string_view prefix, std::string_view from, std::size_t rows,
                          deadline by, completion<entries> done) override;
    [[nodiscard]] op evict(const entry& seen, bool now, std::string_view who, std::string_view why,
                           deadline by, completion<int> done) override;
    [[nodiscard]] op observe(std::string_view name,
                             unique_function<void(std::optional<entry>)> seen) override;
    [[nodiscard]] op stop(deadline by, completion<int> done) override;

private:
    template <class T>
    op answer(std::error_code error, T value, completion<T> done);
    template <class F>
    op listen(std::shared_ptr<F> f, memory_lock_server::listener_id id);
    template <class F>
    unique_function<void()> turn(const std::shared_ptr<F>& f, unique_function<void(F&)> call);
    void arm();

    loop& on_;
    std::shared_ptr<memory_lock_server> server_;
    boot_clock::time_point armed_ = boot_clock::time_point::max();
    op timer_;
    // Listeners that still wait at the server; they must not outlive the loop they post to.
    std::shared_ptr<std::map<memory_lock_server::listener_id, bool>> listening_;
    std::shared_ptr<memory_locks*> self_;
};

}  // namespace trinco::detail
