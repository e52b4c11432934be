#include "sim/fleet_world.hpp"

#include <cmath>
#include <utility>

#include "sim/fleet_run.hpp"

namespace trinco::sim {

using namespace std::chrono_literals;

namespace {

std::string numbered(std::string name, std::uint64_t n) {
    return name += std::to_string(n);
}

}  // namespace

fleet_member::fleet_member(fleet& of, std::size_t index, std::uint32_t life)
    : fleet_(of),
      voter_(index % of.shape.voters),
      name_(numbered(numbered("i", index) += '.', life)),
      node_(of.w.add_node(name_)) {
    const detail::breaker_identity who{name_, numbered("v", voter_)};
    auto line = std::make_unique<lossy_breakers>(of.net, node_, of.server, who);
    line_ = line.get();
    store_ = std::move(line);
    if (of.shape.watched) {
        store_ = std::make_unique<watched_breakers>(of.judge, node_, name_, std::move(store_));
    }
    sync_ = std::make_unique<detail::fleet_sync>(node_, *store_, who);
    detail::engine_env env;
    env.clock = &of.clock;
    env.random = [this] { return node_.random(); };
    env.shards = 1;
    engine_ = std::make_unique<detail::engine>("b", of.shape.options, std::move(env));
}

fleet_member::~fleet_member() {
    node_.kill();  // what its end would send is not sent
    calls_.clear();
    engine_->leave_fleet();
}

void fleet_member::start() {
    engine_->join_fleet(node_, *sync_);
}

void fleet_member::call_regularly(bool on) {
    ++arrivals_;
    if (on) next_arrival();
}

void fleet_member::next_arrival() {
    const double u = static_cast<double>((node_.random() >> 11) + 1) * 0x1.0p-53;
    const double gap = -std::log(u) / fleet_.shape.calls_per_second;
    const auto when = node_.now() + boot_clock::duration(static_cast<std::int64_t>(gap * 1e9));
    node_.run_at(when, [this, of = arrivals_] {
        if (of != arrivals_) return;
        next_arrival();
        call();
    });
}

void fleet_member::call() {
    ++seen_.asked;
    engine_->acquire_async([this](permit p) {
        if (p) {
            admitted(std::move(p));
        } else if (p.refusal().by == refused_by::local_breaker) {
            ++seen_.refused_locally;
        } else {
            ++seen_.refused_by_fleet;
        }
    });
}

void fleet_member::admitted(permit p) {
    ++seen_.admitted;
    if (!p.is_probe()) ++seen_.ordinary;
    auto& world = fleet_.w;
    const auto& outside = fleet_.outside;
    bool fails = outside.bad_voter == voter_ || world.chance(outside.p_fail);
    auto takes = world.between(outside.takes_min, outside.takes_max);
    if (outside.p_hang > 0 && world.chance(outside.p_hang)) {
        takes = outside.hang_for;
        fails = true;
    }
    if (takes <= 0ns) {
        p.settle(fails ? outcome::failure : outcome::success);
        return;
    }
    if (free_places_.empty()) {
        free_places_.push_back(calls_.size());
        calls_.emplace_back();
    }
    const auto place = free_places_.back();
    free_places_.pop_back();
    calls_[place] = std::move(p);
    node_.run_at(node_.now() + takes, [this, place, fails] { returned(place, fails); });
}

void fleet_member::returned(std::size_t place, bool failed) {
    auto call = std::move(calls_[place]);
    free_places_.push_back(place);
    call.settle(failed ? outcome::failure : outcome::success);
}

void fleet_member::stop() {
    stopping_ = sync_->stop(node_.now() + 10s, [this](std::error_code, int) { stopped_ = true; });
}

const detail::view& fleet_member::known() const {
    return sync_->terms_of("b")->fleet;
}

void fleet_member::kill() {
    node_.kill();
    fleet_.server.hang_up(*line_);
}

// ---- the fleet ----------------------------------------------------------------------------------

fleet::fleet(std::uint64_t seed, const fleet_shape& of, bool keep_history)
    : w(seed), server_node(w.add_node("server")), server(w, net, server_node), shape(of) {
    w.keep_history(keep_history);
    w.mirror_clock(clock);
    judge.limit_probes(shape.options.half_open_probes);
    for (std::size_t i = 0; i < shape.instances; ++i) {
        members_.push_back(std::make_unique<fleet_member>(*this, i, ++lives_));
    }
}

fleet::~fleet() = default;

void fleet::start() {
    for (const auto& m : members_) m->start();
    call_regularly(true);
}

void fleet::call_regularly(bool on) {
    calling_ = on;
    for (const auto& m : members_) m->call_regularly(on);
}

bool fleet::run_until(boot_clock::duration bound, const std::function<bool()>& holds,
                      boot_clock::duration step) {
    const auto end = w.now() + bound;
    while (!holds()) {
        if (w.now() >= end) return false;
        run(step);
    }
    return true;
}

void fleet::replace(std::size_t i) {
    auto& place = members_[i];
    place->kill();
    judge.note("killed " + place->name());
    dead_.push_back(std::move(place));
    place = std::make_unique<fleet_member>(*this, i, ++lives_);
    place->start();
    place->call_regularly(calling_);
}

bool fleet::agrees(std::string* why) {
    const auto r = told_by_record();
    for (const auto& m : members_) {
        const auto& known = m->known();
        if (known.era == r.era && known.rev == r.rev && known.state == r.state) continue;
        if (why != nullptr) {
            *why = m->name() + " knows (" + std::to_string(known.era) + ", " +
                   std::to_string(known.rev) + "), the record is at (" + std::to_string(r.era) +
                   ", " + std::to_string(r.rev) + ")";
        }
        return false;
    }
    return true;
}

bool fleet::all_in_state(breaker_state s) {
    if (told_by_record().state != s) return false;
    for (const auto& m : members_) {
        if (m->engine().state() != s) return false;
    }
    return true;
}

std::string states_of(fleet& f) {
    const auto say = [](const char* what, breaker_state s) {
        return std::string(what) += trinco::text_of(s);
    };
    std::string all = say("record ", f.told_by_record().state);
    for (std::size_t i = 0; i < f.size(); ++i) {
        const auto s = f.member(i).engine().snapshot();
        all += "; " + f.member(i).name() + say(" local ", s.local_state);
        all += say(" fleet ", f.member(i).known().state);
        if (s.degraded) all += " degraded";
    }
    return all + "; ";
}

}  // namespace trinco::sim
