#include "sim/lock_process.hpp"

#include <utility>

#include "trinco/error.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

lock_process::lock_process(lock_scene& scene, std::string name, int workers)
    : scene_(scene), name_(std::move(name)) {
    for (int i = 0; i < workers; ++i) {
        auto& w = *workers_.emplace_back(std::make_unique<worker>());
        w.who = name_ + "." + std::to_string(i);
    }
}

lock_process::~lock_process() {
    if (alive()) kill();
}

detail::clocks lock_process::read_clocks() const {
    const auto boot = scene_.w.now();
    const auto wall = boot.time_since_epoch() + wall_offset_;
    return {boot, std::chrono::system_clock::time_point(
                      std::chrono::duration_cast<std::chrono::system_clock::duration>(wall))};
}

void lock_process::start() {
    at_ = &scene_.w.add_node(name_ + "#" + std::to_string(++incarnation_));
    at_->post([this] {
        store_ = scene_.ground.store_for(*at_);
        open_session();
    });
}

void lock_process::kill() {
    at_->kill();
    for (auto& w : workers_) {
        if (w->asking) scene_.judge.ended(w->attempt);
        w->asking = false;
        w->next.cancel();
        w->patience.cancel();
        w->lock.reset();
    }
    reopen_.cancel();
    session_.reset();
    store_.reset();
    at_ = nullptr;
}

void lock_process::open_session() {
    detail::session_settings settings;
    settings.ttl = scene_.ttl;
    settings.label = at_->name();
    settings.request_timeout = std::chrono::milliseconds(1'000);
    settings.read_clocks = [this] { return read_clocks(); };
    session_ = std::make_shared<detail::session_core>(*at_, *store_, settings);
    session_->when_lost([this](std::error_code) { session_ended(); });
    session_->open(at_->now() + 5s, [this](std::error_code error) {
        if (error) {
            session_ended();
            return;
        }
        scene_.w.note(at_->name() + " opened " + session_->lease_id());
        for (auto& w : workers_) {
            w->lock = std::make_unique<detail::lock_claim>(session_);
            w->lock->when_lost([this, p = w.get()](std::error_code why) { lost(*p, why); });
            think(*w);
        }
    });
}

// Everything of the old session goes in a turn of its own, and a new one is opened some time later.
void lock_process::session_ended() {
    ++scene_.sessions_lost;
    scene_.w.note(at_->name() + " lost its session");
    reopen_ = at_->after(scene_.w.between(0ms, 500ms), [this] {
        for (auto& w : workers_) {
            w->next.cancel();
            w->patience.cancel();
            if (w->asking) scene_.judge.ended(w->attempt);  // begun since
            w->asking = false;
            w->lock.reset();
        }
        session_.reset();
        open_session();
    });
}

void lock_process::think(worker& w) {
    w.next = at_->after(scene_.w.between(1ms, scene_.think_max), [this, &w] {
        if (!scene_.quiet) begin(w);
    });
}

void lock_process::begin(worker& w) {
    auto& world = scene_.w;
    detail::lock_request ask;
    w.name = scene_.names[world.below(scene_.names.size())];
    const bool counts = w.name == scene_.semaphore;
    ask.parts = {{w.name, counts ? detail::claim_kind::permit : detail::claim_kind::exclusive,
                  counts ? scene_.ground.permits() : 0}};
    const auto kind = world.below(10);
    ask.only_if_free = kind < 2;
    if (kind < 5) ask.by = at_->now() + world.between(50ms, 2 * scene_.ttl);
    // Those that have their place already come before this one.
    for (const auto& other : workers_) {
        if (other->asking && other->lock && other->lock->queued())
            scene_.judge.queued(other->attempt);
    }
    w.attempt = scene_.judge.invoked(w.who, w.name);
    w.asking = true;
    w.lock->acquire(std::move(ask), [this, &w](std::error_code error, const detail::grant& g) {
        acquired(w, error, g);
    });
    if (kind == 5) {
        w.patience = at_->after(world.between(1ms, scene_.ttl), [this, &w] {
            if (!w.asking) return;
            w.lock->abandon();
            w.asking = false;
            scene_.judge.ended(w.attempt);
            think(w);
        });
    }
}

void lock_process::acquired(worker& w, std::error_code error, const detail::grant& g) {
    w.asking = false;
    w.patience.cancel();
    if (error) {
        scene_.judge.ended(w.attempt);
        think(w);
        return;
    }
    const bool held = session_->view()->state(read_clocks()) != detail::lease_state::lost;
    w.claim = w.lock->id();
    scene_.judge.granted(w.attempt, g.tokens.at(0), held);
    work(w, at_->now() + scene_.w.between(0ms, scene_.hold_max));
}

// Writes to the resource now and then while it believes that it holds the lock. A write that is on
// its way, or that a pause delays between the look and the sending, is the resource's to judge.
void lock_process::work(worker& w, boot_clock::time_point until) {
    if (!w.lock->held()) {
        think(w);
        return;
    }
    const auto token = w.lock->granted().tokens.at(0);
    const auto write = [this, attempt = w.attempt, token] {
        scene_.net.send(*at_, scene_.resource,
                        [this, attempt, token] { scene_.judge.wrote(attempt, token); });
    };
    w.next = at_->after(scene_.w.between(1ms, 200ms), [this, &w, until, write] {
        if (w.name != scene_.semaphore) write();
        if (at_->now() >= until) {
            release(w);
        } else {
            work(w, until);
        }
    });
}

void lock_process::release(worker& w) {
    w.next.cancel();
    if (scene_.w.chance(0.5)) {
        w.lock->abandon();
    } else {
        w.lock->release([](std::error_code) {});
    }
    scene_.w.note(w.who + " released " + w.name);
    if (!scene_.quiet && scene_.w.chance(0.02)) {
        close_session();
    } else {
        think(w);
    }
}

void lock_process::lost(worker& w, std::error_code why) {
    scene_.w.note(w.who + " lost " + w.name + ": " + why.message());
    if (!session_->ended()) {
        scene_.judge.told_lost({w.who, w.name, session_->lease_id(), w.claim},
                               scene_.ground.rows());
    }
    if (!w.lock->held()) think(w);
}

void lock_process::calm_down() {
    if (!alive()) return;
    at_->post([this] {
        for (auto& w : workers_) {
            w->next.cancel();
            w->patience.cancel();
            if (w->lock) w->lock->abandon();
            if (w->asking) scene_.judge.ended(w->attempt);
            w->asking = false;
        }
    });
}

void lock_process::close_session() {
    if (session_) session_->close(at_->now() + 1s, [](std::error_code, detail::ended_claims) {});
}

void lock_process::add_beliefs(std::vector<belief>& out) const {
    if (!alive() || at_->paused()) return;
    for (const auto& w : workers_) {
        if (w->lock && w->lock->held()) {
            out.push_back({w->who, w->name, session_->lease_id(), w->lock->id()});
        }
    }
}

std::string lock_process::lease() const {
    return session_ && !session_->ended() ? session_->lease_id() : std::string();
}

std::size_t lock_process::debts() const {
    return session_ ? session_->debts() : 0;
}

}  // namespace trinco::sim
