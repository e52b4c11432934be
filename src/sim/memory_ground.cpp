#include "sim/lock_ground.hpp"
#include "sim/lossy_locks.hpp"
#include "store/memory/memory_locks.hpp"

namespace trinco::sim {
namespace {

class memory_ground final : public lock_ground {
public:
    memory_ground(world& w, network& net)
        : server_{&w.add_node("server")},
          locks_(std::make_shared<detail::memory_lock_server>([&w] { return w.now(); })),
          store_(*server_[0], locks_),
          service_(std::make_shared<lock_service>(net, *server_[0], store_)) {}

    std::unique_ptr<detail::lock_store> store_for(node& client) override {
        return std::make_unique<lossy_locks>(client, service_);
    }
    std::vector<lock_row> rows() const override { return locks_->rows(); }
    std::vector<std::string> leases() const override { return locks_->leases(); }
    const std::vector<node*>& servers() const override { return server_; }
    std::chrono::seconds least_ttl() const override { return std::chrono::seconds(1); }
    std::uint64_t own_faults() const override { return 0; }
    void fault(std::uint64_t, boot_clock::time_point) override {}
    boot_clock::duration slack(std::chrono::seconds) const override { return {}; }

private:
    const std::vector<node*> server_;
    const std::shared_ptr<detail::memory_lock_server> locks_;
    detail::memory_locks store_;
    const std::shared_ptr<lock_service> service_;
};

}  // namespace

std::unique_ptr<lock_ground> make_memory_ground(world& w, network& net) {
    return std::make_unique<memory_ground>(w, net);
}

}  // namespace trinco::sim
