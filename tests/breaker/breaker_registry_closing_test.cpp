// The end of a registry while its store is busy with it.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include "breaker/access.hpp"
#include "store/driver.hpp"
#include "store/open.hpp"
#include "trinco/breaker_registry.hpp"
#include "trinco/store.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;

// Who did what to the store.
struct seen_threads {
    std::mutex m;
    std::thread::id loop;
    std::set<std::thread::id> all;
    std::atomic<bool> asked{false};
    std::atomic<bool> left{false};

    void here() {
        const std::lock_guard hold(m);
        all.insert(std::this_thread::get_id());
    }
    [[nodiscard]] bool is_loop_alone() {
        const std::lock_guard hold(m);
        return all == std::set{loop};
    }
};

// Never answers, so that whatever is asked stays under way until its interest ends.
class mute_store final : public detail::breaker_store {
public:
    explicit mute_store(std::shared_ptr<seen_threads> seen) : seen_(std::move(seen)) {}

    detail::op exchange(std::span<const detail::news>, detail::deadline,
                        detail::completion<std::vector<detail::verdict>> done) override {
        seen_->asked = true;
        seen_->asked.notify_all();
        return kept(std::move(done));
    }
    detail::op look(const detail::look_request&, detail::deadline,
                    detail::completion<detail::glance> done) override {
        return kept(std::move(done));
    }
    detail::op probe(const detail::probe_request&, detail::deadline,
                     detail::completion<detail::probe_reply> done) override {
        return kept(std::move(done));
    }
    detail::op control(const detail::control_request&, detail::deadline,
                       detail::completion<detail::view> done) override {
        return kept(std::move(done));
    }
    detail::op inspect(std::string_view, std::string_view, std::size_t, detail::deadline,
                       detail::completion<detail::page> done) override {
        return kept(std::move(done));
    }
    detail::op subscribe(detail::unique_function<void(const detail::notice&)> on_notice) override {
        return kept(std::move(on_notice));
    }
    void foretell(detail::unique_function<bool(const detail::opening&)> on_opening) override {
        seen_->here();
        if (on_opening) return;
        seen_->left = true;
        seen_->left.notify_all();
    }
    detail::op stop(detail::deadline, detail::completion<int> done) override {
        return kept(std::move(done));
    }

private:
    template <class F>
    detail::op kept(F f) {
        seen_->here();
        return detail::op([seen = seen_, f = std::move(f)] { seen->here(); });
    }
    std::shared_ptr<seen_threads> seen_;
};

class mute_driver final : public detail::store_driver {
public:
    explicit mute_driver(std::shared_ptr<seen_threads> seen) : seen_(std::move(seen)) {}

    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> own{"mute"};
        return own;
    }
    [[nodiscard]] detail::opened_stores open(const detail::store_url&, detail::event_loop&,
                                             std::string_view,
                                             const detail::breaker_identity&) override {
        seen_->loop = std::this_thread::get_id();
        return {.breakers = std::make_unique<mute_store>(seen_), .locks = nullptr};
    }

private:
    std::shared_ptr<seen_threads> seen_;
};

struct BreakerRegistryClosing : ::testing::Test {
    BreakerRegistryClosing() {
        registry_options o;
        o.defaults.sync_interval = 10ms;
        o.defaults.store_timeout = 20ms;
        r = std::make_unique<breaker_registry>(where, o);
        (void)r->get("payments");
        seen->asked.wait(false);
    }
    static store opened(const std::shared_ptr<seen_threads>& by) {
        store_settings s;
        s.close_timeout = 10ms;
        return open("mute:", {driver(std::make_shared<mute_driver>(by))}, s);
    }

    const std::shared_ptr<seen_threads> seen = std::make_shared<seen_threads>();
    store where = opened(seen);
    std::unique_ptr<breaker_registry> r;
};

// The loop still uses the conversation, whichever thread closes the registry.
TEST_F(BreakerRegistryClosing, TheConversationEndsOnTheThreadThatUsesIt) {
    r.reset();
    EXPECT_TRUE(seen->left) << "nothing is left behind";
    EXPECT_TRUE(seen->is_loop_alone());
}

TEST_F(BreakerRegistryClosing, AndSoItDoesWhenNobodyWaitsForItAnyMore) {
    std::promise<void> gate;
    detail::store_access::state(where)->on().post(
        [open = gate.get_future().share()] { open.wait(); });
    r.reset();
    EXPECT_FALSE(seen->left);
    gate.set_value();
    seen->left.wait(false);
    EXPECT_TRUE(seen->is_loop_alone());
}

}  // namespace
}  // namespace trinco::test
