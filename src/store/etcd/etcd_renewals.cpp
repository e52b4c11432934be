#include "store/etcd/etcd_renewals.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/backoff.hpp"
#include "store/etcd/etcd_fault.hpp"
#include "store/etcd/etcd_methods.hpp"
#include "store/etcd/etcd_wire.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr backoff between_streams{100ms, 1'000ms};
// The one that the stream was opened with, the newest known, a new one.
constexpr int tokens_tried = 3;

}  // namespace

struct etcd_renewals::one {
    std::int64_t lease = 0;
    deadline by{};
    deadline begun{};
    completion<std::chrono::seconds> done;
    bool sent = false;
    op half;
    op limit;
};

etcd_renewals::etcd_renewals(loop& on, etcd_way& way, etcd_login& login)
    : loop_(on), way_(way), login_(login) {
    way_.add(*this);
}

etcd_renewals::~etcd_renewals() = default;

op etcd_renewals::start(std::int64_t lease, deadline by, completion<std::chrono::seconds> done) {
    const auto id = next_++;
    const bool fits = all_.size() < most;
    auto& r = all_[id];
    r = std::make_unique<one>();
    r->lease = lease;
    r->by = by;
    r->begun = loop_.now();
    r->done = std::move(done);
    if (!fits) {
        r->limit = loop_.after(0s, [this, id] { finish(id, make_error_code(errc::busy)); });
    } else {
        r->limit = loop_.at(by, [this, id] {
            const bool sent = all_.at(id)->sent;
            finish(id, make_error_code(sent ? errc::unknown_outcome : errc::unavailable));
        });
        r->half = loop_.at(r->begun + (by - r->begun) / 2, [this, id] { half_over(id); });
        if (stream_) {
            send(id, *r);
        } else {
            open_if_needed();
        }
    }
    return op([this, id, life = std::weak_ptr(life_)] {
        if (!life.expired()) all_.erase(id);
    });
}

void etcd_renewals::send(std::uint64_t id, one& r) {
    r.sent = true;
    unanswered_.push_back({r.lease, id});
    stream_->send(encode_renewal(r.lease));
}

void etcd_renewals::open_if_needed() {
    if (stream_ || all_.empty()) return;
    if (!way_.is_up()) return way_.want();
    if (!login_.is_ready()) {
        if (login_.is_refused()) return fail_all(errc::denied);
        return login_.want();
    }
    endpoint_ = way_.current();
    generation_ = way_.generation();
    token_ = login_.token();
    opened_ = loop_.now();
    stream_ = way_.by().open(
        {endpoint_, lane::renewals}, method::keep_alive, {token_, true},
        [this](const std::string& bytes) { heard(bytes); },
        [this](const wire_status& status) { ended(status); });
    std::vector<std::uint64_t> ids;
    ids.reserve(all_.size());
    for (const auto& [id, r] : all_) ids.push_back(id);
    std::sort(ids.begin(), ids.end());  // the oldest first
    for (const auto id : ids) send(id, *all_.at(id));
}

void etcd_renewals::heard(const std::string& bytes) {
    const auto reply = decode_renewal(bytes);
    if (!reply) return;
    heard_ = loop_.now();
    failures_ = 0;
    refusals_ = 0;
    const auto at = std::find_if(unanswered_.begin(), unanswered_.end(),
                                 [&](const message& m) { return m.lease == reply->id; });
    if (at == unanswered_.end()) return;
    const auto id = at->id;
    unanswered_.erase(at);
    if (reply->ttl > 0s) return finish(id, {}, reply->ttl);
    finish(id, make_error_code(errc::lost));
}

void etcd_renewals::ended(const wire_status& status) {
    const auto what = judge(status, way_.by().name(endpoint_));
    // The server works in order: what it refuses is the first that it has not answered.
    const auto first = unanswered_.empty() ? next_ : unanswered_.front().id;
    close();
    ++failures_;
    if (what.login && login_.has_user() && ++refusals_ < tokens_tried) {
        login_.expired(token_);
    } else if (what.code == errc::denied || what.code == errc::lost) {
        refusals_ = 0;
        finish(first, make_error_code(what.code));
    } else if (what.leave) {
        way_.failed(endpoint_, what.sentence);
        way_.by().renew({endpoint_, lane::renewals});
    }
    later();
}

void etcd_renewals::half_over(std::uint64_t id) {
    const auto at = all_.find(id);
    if (at == all_.end() || !at->second->sent || !stream_) return;
    const auto& r = *at->second;
    // One that answers others takes its time, and one that has just begun gets some.
    if (heard_ > r.begun || loop_.now() - opened_ < (r.by - r.begun) / 4) return;
    if (way_.has_others()) {
        way_.failed(endpoint_, way_.by().name(endpoint_) + ": does not renew a lease");
    }
    way_.by().renew({endpoint_, lane::renewals});
    close();
    later();
}

void etcd_renewals::close() {
    stream_.reset();
    unanswered_.clear();
}

void etcd_renewals::later() {
    const auto pause = failures_ <= 1 ? 0ms : between_streams.wait(failures_ - 2, loop_.random());
    again_ = loop_.after(pause, [this] { open_if_needed(); });
}

void etcd_renewals::way_is_up() {
    if (stream_ && generation_ != way_.generation()) close();
    open_if_needed();
}

void etcd_renewals::way_is_hopeless(errc why) {
    if (!stream_) fail_all(why);
}

void etcd_renewals::fail_all(errc why) {
    again_ = loop_.after(0s, [this, why] {
        if (stream_) return;
        std::vector<std::uint64_t> ids;
        for (const auto& [id, r] : all_) ids.push_back(id);
        for (const auto id : ids) finish(id, make_error_code(why));
    });
}

void etcd_renewals::drop_all() {
    close();
    all_.clear();
    again_.cancel();
}

void etcd_renewals::finish(std::uint64_t id, std::error_code error, std::chrono::seconds ttl) {
    const auto node = all_.extract(id);
    if (!node.empty()) node.mapped()->done(error, ttl);
}

}  // namespace trinco::detail::etcd
