// Locks of all processes of a machine: lock_store on a local file. See local_queues.hpp for who is
// granted when, local_lives.hpp for who is alive, local_lock_watch.hpp for waiting.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "store/local/local_calls.hpp"
#include "store/local/local_lock_watch.hpp"
#include "store/lock_store.hpp"

namespace trinco::detail {

class local_locks final : public lock_store {
public:
    // The loop must outlive the store. Throws open_error.
    // `is_run_here`: see local_calls.
    local_locks(loop& on, std::shared_ptr<local_worker> worker,
                std::function<bool()> is_run_here = nullptr);
    // Its sessions die with it: their bytes are free at once.
    ~local_locks() override;
    local_locks(const local_locks&) = delete;
    local_locks& operator=(const local_locks&) = delete;

    // What a child must inherit to keep the lease alive until its last descendant is gone. Closed
    // on exec unless the caller changes that.
    [[nodiscard]] int live_descriptor(std::string_view lease) const override;
    void get_ready() noexcept override { worker_->get_ready(); }
    void before_exit() noexcept override { worker_->before_exit(); }
    bool is_gone() const noexcept override { return worker_->is_replaced(); }

    [[nodiscard]] const lock_traits& traits() const override { return local_queues::traits(); }
    [[nodiscard]] op open(std::chrono::seconds ttl, std::string_view label, deadline by,
                          completion<lease> done) override;
    void expect(const claim& first) override { expected_ = first; }
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
    [[nodiscard]] std::string trouble(const std::error_code& told) const override;

private:
    // An expected claim, entered with the lease that is new.
    struct entered_ahead {
        claim what;
        std::error_code error;
        place at;
    };
    struct opened {
        lease made;
        std::optional<entered_ahead> first;
    };
    // While the completion of that renewal runs.
    struct fresh_account {
        std::string lease;
        std::vector<claim_id> owned;
    };

    [[nodiscard]] static std::error_code enter(local_queues& q, const claim& what, place& at);
    template <class T, class F>
    op ask(local_job::kind needs, deadline by, completion<T> done, F request);
    op listen(local_lock_watch::kind k, std::string_view what, claim_id id, lock_listener l);
    template <class F>
    void tell_worker(local_job::kind needs, F request);

    void let_it_serve(loop& on);

    std::shared_ptr<local_worker> worker_;
    op serve_;
    std::shared_ptr<local_outlet> outlet_;
    std::shared_ptr<local_calls> calls_;
    std::shared_ptr<local_lives> lives_;
    std::uint64_t epoch_;
    local_process self_;
    std::shared_ptr<lock_listeners> listeners_;
    std::shared_ptr<local_lock_watch> watch_;
    std::uint64_t next_listener_ = 1;
    std::shared_ptr<std::optional<fresh_account>> account_ =
        std::make_shared<std::optional<fresh_account>>();
    std::optional<claim> expected_;  // by the next open
    std::shared_ptr<std::optional<entered_ahead>> ahead_ =
        std::make_shared<std::optional<entered_ahead>>();  // until it is entered
    bool observed_ = false;                                // anything
};

}  // namespace trinco::detail
