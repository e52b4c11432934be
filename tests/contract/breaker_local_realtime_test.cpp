// The contract of breaker_store on local: a worker and a connection for each store object, as
// separate processes have them.
#include <algorithm>

#include "store/local/local_breaker_rows.hpp"
#include "store/local/local_breakers.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/store/local/scratch_folder.hpp"

namespace trinco::detail::test {
namespace {

class local_fixture : public breaker_store_fixture {
public:
    std::unique_ptr<breaker_store> make_store(breaker_identity who) override {
        auto settings = local_settings_for(folder_.file());
        settings.boot_time = [this] { return on_.time(); };
        auto worker = std::make_shared<local_worker>(std::move(settings), "local:test");
        return std::make_unique<local_breakers>(on_, std::move(worker), "default", std::move(who));
    }
    loop& on() override { return on_; }
    // Most of it at once; the rest lets the workers finish what they are at.
    void pass(milliseconds d) override {
        const milliseconds real = std::min(d, settling);
        on_.skip(d - real);
        on_.run_for(real);
    }
    faults can() override {
        faults f;
        f.breakers_kept = [this] {
            auto settings = local_settings_for(folder_.file());
            settings.boot_time = [this] { return on_.time(); };
            local_file file(std::move(settings), "local:test");
            local_breaker_rows rows("default", 0);
            return rows.inspect(file, "", "", 1'000).rows.size();
        };
        return f;
    }
    bool run_until(const std::function<bool()>& done, milliseconds limit) override {
        return on_.run_until(done, limit);
    }
    [[nodiscard]] milliseconds slack() const override { return 100ms; }
    [[nodiscard]] bool is_exact() const override { return false; }

private:
    static constexpr milliseconds settling{30};
    scratch_folder folder_;
    driven_loop on_;
};

INSTANTIATE_BREAKER_STORE_SUITE(local, [] { return std::make_unique<local_fixture>(); });

}  // namespace
}  // namespace trinco::detail::test
