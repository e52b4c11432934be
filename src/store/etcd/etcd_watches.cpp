#include "store/etcd/etcd_watches.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/backoff.hpp"
#include "store/etcd/etcd_fault.hpp"
#include "store/etcd/etcd_methods.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr backoff between_streams{100ms, 1'000ms};
// The one that the stream was opened with, the newest known, a new one.
constexpr int tokens_tried = 3;

bool has(const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
}

// What etcd says when a token is not taken, in the words that it has instead of a code.
bool may_be_the_token(const std::string& reason) {
    return has(reason, "permission denied") || has(reason, "invalid auth token") ||
           has(reason, "revision of auth store is old") || has(reason, "user name is empty");
}

}  // namespace

struct etcd_watches::one {
    watch_request what;  // from_revision moves on
    rpc::on_news news;
    rpc::on_over over;
    bool on_stream = false;  // the server was asked for it, on this stream
    int refusals = 0;        // since it was last created
    std::vector<watch_event> parts;
    op end;
};

etcd_watches::etcd_watches(loop& on, etcd_way& way, etcd_login& login)
    : loop_(on), way_(way), login_(login) {
    way_.add(*this);
}

etcd_watches::~etcd_watches() = default;

op etcd_watches::start(watch_request what, rpc::on_news news, rpc::on_over over) {
    const auto id = next_++;
    const bool fits = all_.size() < most;
    auto w = std::make_shared<one>();
    w->what = std::move(what);
    w->news = std::move(news);
    w->over = std::move(over);
    all_[id] = w;
    if (!fits) {
        w->end = loop_.after(0s, [this, id] { finish(id, errc::busy); });
    } else if (stream_) {
        create(id, *w);
    } else {
        open_if_needed();
    }
    return op([this, id, life = std::weak_ptr(life_)] {
        if (!life.expired()) drop(id);
    });
}

void etcd_watches::drop(std::int64_t id) {
    const auto node = all_.extract(id);
    if (!node.empty() && node.mapped()->on_stream && stream_) stream_->send(encode_watch_end(id));
}

void etcd_watches::create(std::int64_t id, one& w) {
    w.on_stream = true;
    w.parts.clear();
    asked_.push_back(id);
    stream_->send(encode_watch(id, w.what));
}

void etcd_watches::open_if_needed() {
    if (stream_ || all_.empty()) return;
    if (!way_.is_up()) return way_.want();
    if (!login_.is_ready()) {
        if (login_.is_refused()) return fail_all(errc::denied);
        return login_.want();
    }
    endpoint_ = way_.current();
    generation_ = way_.generation();
    token_ = login_.token();
    stream_ = way_.by().open(
        {endpoint_, lane::watches}, method::watch, {token_, true},
        [this](const std::string& bytes) { heard(bytes); },
        [this](const wire_status& status) { ended(status); });
    for (auto& [id, w] : all_) create(id, *w);
}

void etcd_watches::heard(const std::string& bytes) {
    auto m = decode_watch(bytes);
    if (!m) return;
    if (m->created) created(*m);
    if (m->created && m->canceled && m->id < 0) return;  // told by its place
    if (m->canceled) return refused(m->id, *m);
    tell(m->id, std::move(*m));
}

void etcd_watches::created(const watch_message& m) {
    if (asked_.empty()) return;
    const auto id = asked_.front();
    asked_.pop_front();
    if (m.canceled) {
        if (m.id < 0) refused(id, m);
        return;
    }
    failures_ = 0;
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    at->second->refusals = 0;
    // What was asked for "from now on" has begun now.
    if (at->second->what.from_revision == 0) at->second->what.from_revision = m.revision + 1;
}

void etcd_watches::refused(std::int64_t id, const watch_message& m) {
    const auto at = all_.find(id);
    if (at == all_.end()) return;
    auto& w = *at->second;
    w.on_stream = false;
    if (m.compacted > 0 || has(m.reason, "compacted")) return finish(id, errc::conflict);
    if (may_be_the_token(m.reason)) {
        if (!login_.has_user() || ++w.refusals == tokens_tried) return finish(id, errc::denied);
        // A stream keeps the token that it was opened with.
        login_.expired(token_);
        close();
        return later();
    }
    if (m.reason.empty() || has(m.reason, "no leader")) {
        way_.failed(endpoint_, way_.by().name(endpoint_) + ": ended a watch: " + m.reason);
        close();
        ++failures_;
        return later();
    }
    finish(id, errc::invalid);
}

void etcd_watches::tell(std::int64_t id, watch_message m) {
    const auto at = all_.find(id);
    if (at == all_.end() || m.created) return;
    const auto w = at->second;  // may be dropped by its own news
    std::move(m.events.begin(), m.events.end(), std::back_inserter(w->parts));
    if (m.more) return;
    watch_news now{m.revision, std::exchange(w->parts, {})};
    // While a watch catches up, the store is ahead of what is told of it.
    if (!now.events.empty()) now.revision = now.events.back().now.mod_revision;
    w->what.from_revision = std::max(w->what.from_revision, now.revision + 1);
    w->news(now);
}

void etcd_watches::ended(const wire_status& status) {
    const auto what = judge(status, way_.by().name(endpoint_));
    close();
    ++failures_;
    if (what.login && login_.has_user()) {
        login_.expired(token_);
    } else if (what.code == errc::denied) {
        return fail_all(what.code);
    } else if (what.leave) {
        way_.failed(endpoint_, what.sentence);
        way_.by().renew({endpoint_, lane::watches});
    }
    later();
}

void etcd_watches::close() {
    stream_.reset();
    asked_.clear();
    for (auto& [id, w] : all_) w->on_stream = false;
}

void etcd_watches::later() {
    const auto pause = failures_ <= 1 ? 0ms : between_streams.wait(failures_ - 2, loop_.random());
    again_ = loop_.after(pause, [this] { open_if_needed(); });
}

void etcd_watches::way_is_up() {
    if (stream_ && generation_ != way_.generation()) close();
    open_if_needed();
}

void etcd_watches::way_is_hopeless(errc why) {
    if (!stream_) fail_all(why);
}

void etcd_watches::fail_all(errc why) {
    again_ = loop_.after(0s, [this, why] {
        if (stream_) return;
        std::vector<std::int64_t> ids;
        for (const auto& [id, w] : all_) ids.push_back(id);
        for (const auto id : ids) finish(id, why);
    });
}

void etcd_watches::drop_all() {
    close();
    all_.clear();
    again_.cancel();
}

void etcd_watches::finish(std::int64_t id, errc why) {
    const auto node = all_.extract(id);
    if (!node.empty()) node.mapped()->over(make_error_code(why));
}

}  // namespace trinco::detail::etcd
