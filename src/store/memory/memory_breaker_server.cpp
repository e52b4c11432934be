#include <algorithm>
#include <optional>
#include <utility>

#include "core/names.hpp"
#include "store/memory/memory_breakers.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

namespace {

constexpr std::size_t max_breakers = 100'000;
constexpr int swept_per_exchange = 2;
constexpr std::size_t max_page = 1'000;

[[nodiscard]] store_time system_time() {
    return std::chrono::duration_cast<store_time>(
        std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace

class memory_breaker_server::access {
public:
    access(memory_breaker_server& server, std::string_view breaker)
        : server_(server), breaker_(breaker), now_(server.now()) {
        auto at = server.rows_.find(breaker);
        if (at != server.rows_.end() && at->second.expires <= now_) {
            server.rows_.erase(at);
            at = server.rows_.end();
        }
        if (at != server.rows_.end()) row_ = &at->second;
    }

    [[nodiscard]] store_time now() const noexcept { return now_; }
    [[nodiscard]] bool has_room() const noexcept {
        return row_ != nullptr || server_.rows_.size() < max_breakers;
    }
    [[nodiscard]] fleet_record& record() noexcept {
        if (row_ != nullptr) return row_->record;
        return absent_ ? *absent_ : absent_.emplace();
    }
    // Keeps the record, for its time to live from now.
    void keep() {
        if (row_ == nullptr) {
            row_ = &server_.rows_.emplace(breaker_, row{std::move(record()), {}}).first->second;
        }
        row_->expires = now_ + time_to_live(row_->record, now_);
    }

private:
    memory_breaker_server& server_;
    std::string_view breaker_;
    store_time now_;
    row* row_ = nullptr;
    std::optional<fleet_record> absent_;  // made when it is asked for: most are there
};

memory_breaker_server::memory_breaker_server(unique_function<store_time()> clock)
    : clock_(std::move(clock)) {
    if (!clock_) clock_ = system_time;
}

memory_breaker_server::rows memory_breaker_server::snapshot() const {
    const std::lock_guard lock(mutex_);
    return rows_;
}

void memory_breaker_server::restore(rows from) {
    const std::lock_guard lock(mutex_);
    rows_ = std::move(from);
    post_to_all({notice::kind_t::new_server, {}, {}});
}

void memory_breaker_server::announce_gap() {
    const std::lock_guard lock(mutex_);
    post_to_all({notice::kind_t::gap, {}, {}});
}

std::size_t memory_breaker_server::size() {
    const std::lock_guard lock(mutex_);
    sweep_all();
    return rows_.size();
}

fleet_record memory_breaker_server::record_of(std::string_view breaker) const {
    const std::lock_guard lock(mutex_);
    const auto at = rows_.find(breaker);
    return at != rows_.end() && at->second.expires > now() ? at->second.record : fleet_record{};
}

glance memory_breaker_server::look(const look_request& q) const {
    const std::lock_guard lock(mutex_);
    const store_time t = now();
    const auto at = rows_.find(q.breaker);
    if (at != rows_.end() && at->second.expires > t) return detail::look(at->second.record, q, t);
    return detail::look(fleet_record{}, q, t);
}

verdict memory_breaker_server::exchange(const breaker_identity& who, const news& n) {
    verdict v;
    if (check_breaker_name(n.breaker)) {
        v.error = errc::invalid;
        return v;
    }
    const std::lock_guard lock(mutex_);
    access a(*this, n.breaker);
    if (n.slices.size() > max_slices || !a.has_room()) {
        v.error = errc::busy;
        return v;
    }
    effects did;
    v = apply(a.record(), who, n, a.now(), did);
    if (v.error) return v;
    a.keep();
    publish(n.breaker, a.record(), did);
    sweep_some();
    return v;
}

probe_reply memory_breaker_server::probe(const breaker_identity& who, const probe_request& p) {
    const std::lock_guard lock(mutex_);
    access a(*this, p.breaker);
    effects did;
    probe_reply reply = apply(a.record(), who, p, a.now(), did);
    // A plain refusal prolongs nothing and makes nothing.
    if ((reply.granted || did.changed) && a.has_room()) a.keep();
    publish(p.breaker, a.record(), did);
    return reply;
}

view memory_breaker_server::control(const control_request& c, std::error_code& error) {
    const std::lock_guard lock(mutex_);
    access a(*this, c.breaker);
    if (!a.has_room()) {
        error = errc::busy;
        return {};
    }
    effects did;
    view v = apply(a.record(), c, a.now(), did, error);
    if (!error) a.keep();
    publish(c.breaker, a.record(), did);
    return v;
}

page memory_breaker_server::inspect(std::string_view prefix, std::string_view from,
                                    std::size_t most) {
    const std::lock_guard lock(mutex_);
    sweep_all();
    page p;
    auto at = from < prefix ? rows_.lower_bound(prefix) : rows_.upper_bound(from);
    for (; at != rows_.end() && at->first.starts_with(prefix); ++at) {
        if (p.rows.size() == std::min(most, max_page)) {
            p.next = p.rows.back().breaker;
            break;
        }
        p.rows.push_back(report_of(at->second.record, at->first, now()));
    }
    return p;
}

void memory_breaker_server::subscribe(loop& on, std::shared_ptr<listener> to) {
    const std::lock_guard lock(mutex_);
    subscriptions_.push_back({&on, std::move(to)});
}

void memory_breaker_server::unsubscribe(const listener& to) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(subscriptions_, [&](const subscription& s) { return s.to.get() == &to; });
}

void memory_breaker_server::sweep_some() {
    const store_time t = now();
    auto at = rows_.upper_bound(swept_up_to_);
    for (int i = 0; i < swept_per_exchange && at != rows_.end(); ++i) {
        swept_up_to_ = at->first;
        at = at->second.expires <= t ? rows_.erase(at) : std::next(at);
    }
    if (at == rows_.end()) swept_up_to_.clear();
}

void memory_breaker_server::sweep_all() {
    std::erase_if(rows_, [t = now()](const auto& r) { return r.second.expires <= t; });
}

void memory_breaker_server::publish(std::string_view breaker, const fleet_record& r,
                                    const effects& did) {
    if (subscriptions_.empty() || (!did.changed && !did.flush)) return;
    notice n{notice::kind_t::changed, std::string(breaker), view_of(r, now())};
    if (did.changed) post_to_all(n);
    n.kind = notice::kind_t::flush;
    if (did.flush) post_to_all(n);
}

void memory_breaker_server::post_to_all(const notice& n) {
    for (const subscription& s : subscriptions_) {
        s.on->post([to = s.to, n] {
            if (!to->ended) to->heard(n);
        });
    }
}

}  // namespace trinco::detail
