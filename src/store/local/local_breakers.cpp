#include "store/local/local_breakers.hpp"

#include <cassert>
#include <utility>

#include "core/names.hpp"
#include "store/local/local_breaker_rows.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t max_rows = 1'000;
constexpr auto reread_every = std::chrono::seconds(1);
// The longest probe_timeout: leases older than that are of no interest any more.
constexpr auto loss_matters_for = std::chrono::hours(1);

using kind = local_job::kind;

}  // namespace

// Looks at what changed since, and posts it. Until subscribe's own transaction has run, nothing.
class local_breakers::watcher final : public local_watcher {
public:
    watcher(std::shared_ptr<local_breaker_rows> rows, std::shared_ptr<local_outlet> outlet,
            std::weak_ptr<listener> to)
        : rows_(std::move(rows)), outlet_(std::move(outlet)), to_(std::move(to)) {}

    // From what the store object knew before.
    void begin(local_file& at) {
        seen_ = rows_->seen();
        const auto since = at.since_loss();
        if (since && *since < loss_matters_for) tell({notice::kind_t::new_server, {}, {}});
        begun_ = true;
    }

    std::shared_ptr<local_job> look(local_file& at, const local_round*) override {
        next_ = boot_clock::now() + reread_every;
        if (begun_) {
            for (auto& n : rows_->changes(at, seen_)) tell(std::move(n));
        }
        return nullptr;
    }
    [[nodiscard]] boot_clock::time_point next_look() override { return next_; }

private:
    void tell(notice n) {
        outlet_->post([to = to_, n = std::move(n)] {
            if (const auto l = to.lock(); l && !l->ended) l->heard(n);
        });
    }

    std::shared_ptr<local_breaker_rows> rows_;
    std::shared_ptr<local_outlet> outlet_;
    std::weak_ptr<listener> to_;
    boot_clock::time_point next_ = boot_clock::time_point::min();
    std::int64_t seen_ = 0;
    bool begun_ = false;
};

local_breakers::local_breakers(loop& on, std::shared_ptr<local_worker> worker,
                               std::string name_space, breaker_identity who)
    : loop_(on),
      worker_(std::move(worker)),
      outlet_(std::make_shared<local_outlet>(on)),
      calls_(std::make_shared<local_calls>(on, worker_, outlet_)),
      rows_(
          std::make_shared<local_breaker_rows>(std::move(name_space), worker_->changes_at_open())),
      who_(std::move(who)) {
    assert(!check_instance(who_.instance) && !check_voter(who_.voter));
}

local_breakers::~local_breakers() {
    end_subscription();
    outlet_->close();
}

op local_breakers::exchange(std::span<const news> batch, deadline by,
                            completion<std::vector<verdict>> done) {
    if (batch.size() > max_news) return calls_->refuse(errc::busy, std::move(done));
    return calls_->start(
        kind::write, by, std::move(done),
        [rows = rows_, who = who_, all = std::vector<news>(batch.begin(), batch.end())](
            local_file& in, local_round& after, std::vector<verdict>& verdicts) {
            verdicts.reserve(all.size());
            for (const news& n : all) verdicts.push_back(rows->exchange(in, after, who, n));
            rows->see(in);
            return std::error_code();
        });
}

op local_breakers::look(const look_request& request, deadline by, completion<glance> done) {
    if (check_breaker_name(request.breaker)) return calls_->refuse(errc::invalid, std::move(done));
    return calls_->start(kind::read, by, std::move(done),
                         [rows = rows_, request](local_file& in, local_round&, glance& seen) {
                             return rows->look(in, request, seen);
                         });
}

op local_breakers::probe(const probe_request& request, deadline by, completion<probe_reply> done) {
    if (request.token == 0 || check_breaker_name(request.breaker)) {
        return calls_->refuse(errc::invalid, std::move(done));
    }
    return calls_->start(kind::write, by, std::move(done),
                         [rows = rows_, who = who_, request](local_file& in, local_round& after,
                                                             probe_reply& reply) {
                             return rows->probe(in, after, who, request, reply);
                         });
}

op local_breakers::control(const control_request& request, deadline by, completion<view> done) {
    if (check_breaker_name(request.breaker)) return calls_->refuse(errc::invalid, std::move(done));
    return calls_->start(kind::write, by, std::move(done),
                         [rows = rows_, request](local_file& in, local_round& after, view& reply) {
                             return rows->control(in, after, request, reply);
                         });
}

op local_breakers::inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                           deadline by, completion<page> done) {
    if (prefix.ends_with('*')) prefix.remove_suffix(1);
    if (rows == 0 || rows > max_rows) return calls_->refuse(errc::invalid, std::move(done));
    return calls_->start(kind::read, by, std::move(done),
                         [own = rows_, prefix = std::string(prefix), from = std::string(from),
                          rows](local_file& in, local_round&, page& answer) {
                             answer = own->inspect(in, prefix, from, rows);
                             return std::error_code();
                         });
}

namespace {

// Makes this process known to those who ring, and starts the watcher.
template <class Watcher>
class subscribe_job final : public local_job {
public:
    subscribe_job(std::weak_ptr<Watcher> watcher, std::string socket)
        : local_job(kind::write), watcher_(std::move(watcher)), socket_(std::move(socket)) {}
    void run(local_file& in, local_round& after) override {
        query(in.db().prepared("INSERT OR IGNORE INTO peers(socket) VALUES(?)"), socket_).run();
        after.joins_peers = true;
        after.look = true;
        // Here, and not after the commit: what the same transaction changes next is to be told.
        // Should it fail, nobody rings here, and the watcher looks every second.
        if (const auto w = watcher_.lock()) w->begin(in);
    }
    void finish(std::error_code) noexcept override {}

private:
    std::weak_ptr<Watcher> watcher_;
    std::string socket_;
};

}  // namespace

op local_breakers::subscribe(unique_function<void(const notice&)> on_notice) {
    end_subscription();
    listener_ = std::make_shared<listener>();
    listener_->heard = std::move(on_notice);
    watcher_ = std::make_shared<watcher>(rows_, outlet_, listener_);
    worker_->attach(watcher_);
    worker_->submit(std::make_shared<subscribe_job<watcher>>(watcher_, worker_->socket()));
    return op([listener = std::weak_ptr<listener>(listener_)]() noexcept {
        if (const auto l = listener.lock()) l->ended = true;
    });
}

op local_breakers::stop(deadline by, completion<int> done) {
    end_subscription();
    if (calls_->idle()) return calls_->refuse({}, std::move(done));  // there is nothing to wait for
    return calls_->start(kind::read, by, std::move(done),
                         [](local_file&, local_round&, int&) { return std::error_code(); });
}

void local_breakers::end_subscription() noexcept {
    if (!listener_) return;
    listener_->ended = true;
    listener_ = nullptr;
    watcher_ = nullptr;
}

}  // namespace trinco::detail
