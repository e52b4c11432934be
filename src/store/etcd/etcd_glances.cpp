#include "store/etcd/etcd_glances.hpp"

#include <utility>

#include "trinco/error.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr boot_clock::duration patience = 5s;  // with one request
constexpr boot_clock::duration sooner = 500ms;
constexpr std::size_t most = 100;  // of the 128 that a transaction may have

}  // namespace

op etcd_glances::keep(std::vector<comparison> still, boot_clock::duration every,
                      unique_function<void()> changed) {
    const auto n = next_++;
    auto& o = all_[n];
    o.still = std::move(still);
    o.every = every;
    o.changed = std::move(changed);
    due_at(n, o, on_.now() + every);
    return op([this, n, life = std::weak_ptr(life_)] {
        if (life.expired()) return;
        const auto gone = all_.extract(n);
        if (!gone.empty() && !gone.mapped().asked) due_.erase(gone.mapped().due);
    });
}

void etcd_glances::stop() noexcept {
    timer_.cancel();
    asking_.clear();
    due_.clear();
    all_.clear();
}

void etcd_glances::due_at(id n, one& o, boot_clock::time_point when) {
    o.due = due_.emplace(when, n);
    o.asked = false;
    if (when < armed_) arm();
}

void etcd_glances::arm() {
    armed_ = due_.empty() ? boot_clock::time_point::max() : due_.begin()->first;
    if (due_.empty()) return timer_.cancel();
    timer_ = on_.at(armed_, [this] { ask_those_due(); });
}

void etcd_glances::ask_those_due() {
    std::vector<id> together;
    std::size_t comparisons = 0;
    const auto end = due_.upper_bound(on_.now() + sooner);
    for (auto at = due_.begin(); at != end; at = due_.erase(at)) {
        auto& o = all_.at(at->second);
        if (comparisons + o.still.size() > most) {
            ask(std::exchange(together, {}));
            comparisons = 0;
        }
        o.asked = true;
        comparisons += o.still.size();
        together.push_back(at->second);
    }
    if (!together.empty()) ask(std::move(together));
    arm();
}

void etcd_glances::ask(std::vector<id> together) {
    auto* const link = link_();
    if (link == nullptr) return;
    txn_request what;
    for (const auto n : together) {
        const auto& still = all_.at(n).still;
        what.compare.insert(what.compare.end(), still.begin(), still.end());
    }
    // Without anything to be read the server would not ask a majority.
    range_request least{what.compare.front().keys};
    least.count_only = true;
    what.success.emplace_back(least);
    what.failure.emplace_back(least);
    const auto request = next_++;
    asking_[request] =
        link->txn(what, on_.now() + patience,
                  [this, request, together = std::move(together), life = std::weak_ptr(life_)](
                      std::error_code error, const txn_reply& reply) {
                      if (!life.expired()) answered(request, together, error, reply.succeeded);
                  });
}

void etcd_glances::answered(id request, const std::vector<id>& together, std::error_code error,
                            bool same) {
    const auto answer = asking_.extract(request);  // the list lives in it
    if (!error) pauses_.have_read();
    // Of what only one of them may not read the others are not to suffer.
    const bool away = error == errc::unavailable;
    const auto pause = away ? pauses_.after_failure(on_) : boot_clock::duration();
    std::vector<unique_function<void()>> changed;
    for (const auto n : together) {
        const auto at = all_.find(n);
        if (at == all_.end()) continue;
        if (away || (!error && same)) {
            due_at(n, at->second, on_.now() + (away ? pause : at->second.every));
        } else {
            changed.push_back(std::move(at->second.changed));
            all_.erase(at);
        }
    }
    for (auto& f : changed) f();
}

}  // namespace trinco::detail::etcd
