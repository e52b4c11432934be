// The contract of lock_store on local: two store objects with a worker and a connection each, as
// two processes have them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "lock_store_suite.hpp"
#include "store/local/local_locks.hpp"
#include "store/local/local_mail.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/store/local/scratch_folder.hpp"

namespace trinco::test {
namespace {

class local_world final : public lock_store_world {
public:
    detail::loop& on() override { return on_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    // Most of it at once. The workers sleep by the real clock, so somebody has to ring.
    void run_for(boot_clock::duration d) override {
        const boot_clock::duration real = std::min(d, settle_time());
        if (d > real) {
            on_.skip(d - real);
            for (const auto& socket : {a_worker_->socket(), b_worker_->socket()})
                bell_.ring(socket);
        }
        on_.run_for(real);
    }
    boot_clock::duration settle_time() const override { return 40ms; }
    bool tells_ended_claims() const override { return true; }

private:
    std::shared_ptr<detail::local_worker> worker() {
        auto settings = detail::local_settings_for(folder_.file());
        settings.boot_time = [this] { return on_.time(); };
        return std::make_shared<detail::local_worker>(std::move(settings), "local:test");
    }

    detail::test::scratch_folder folder_;
    detail::local_mail bell_{folder_.path().string(), "bell",
                             detail::local_rights{0600, ::geteuid(), ::getegid()}};
    detail::test::driven_loop on_;
    std::shared_ptr<detail::local_worker> a_worker_ = worker();
    std::shared_ptr<detail::local_worker> b_worker_ = worker();
    detail::local_locks a_{on_, a_worker_};
    detail::local_locks b_{on_, b_worker_};
};

INSTANTIATE_TEST_SUITE_P(Local, LockStore,
                         ::testing::Values(lock_store_case{
                             "File", [] { return std::make_unique<local_world>(); }}),
                         lock_case_name);

}  // namespace
}  // namespace trinco::test
