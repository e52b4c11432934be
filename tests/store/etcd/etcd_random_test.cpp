// Random histories: clients that enter, wait, hold and leave with claims of all kinds, a cluster
// and a network that fail in every way the simulator knows. Whatever happens, no two claims that
// conflict are granted while their entries stand, tokens follow the order of the queue, nothing is
// granted after its entry is gone; and when all is well again everybody gets on.
//
// TRINCO_ETCD_SEEDS sets how many histories are run, 30 without it; TRINCO_ETCD_SEED the only one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/simulated_etcd_client.hpp"
#include "store/etcd/etcd_layout.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "trinco/error.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;
using namespace detail;

constexpr std::chrono::seconds life{4};  // of leases
constexpr auto wild = 40s;
constexpr auto calm = 60s;

// What the claims say of themselves, against what lies in etcd.
class judge final : public sim::etcd_listener {
public:
    explicit judge(sim::simulated_etcd& at) : etcd_(at) { etcd_.listen(*this); }
    judge(const judge&) = delete;
    judge& operator=(const judge&) = delete;
    ~judge() override { etcd_.forget(*this); }

    struct held {
        const claim* what = nullptr;
        std::vector<std::pair<std::string, std::int64_t>> entries;  // keys, create revisions
    };

    void granted(const claim& what, const grant& g) {
        held h{&what, {}};
        const auto lease = *etcd::lease_number(what.lease);
        for (std::size_t i = 0; i < what.parts.size(); ++i) {
            const auto& [key, created] = entries_[{what.parts[i].name, lease, what.info}];
            h.entries.emplace_back(key, created);
            const auto token = static_cast<std::int64_t>(g.tokens.at(i));
            if (what.parts[i].kind != claim_kind::exclusive) {
                EXPECT_EQ(token, 0);
                continue;
            }
            EXPECT_GE(token, created) << key;
            const auto gone = gone_.find({key, created});
            if (gone != gone_.end()) {
                EXPECT_LT(token, gone->second) << key << " was granted after it was gone";
            }
            tokens_[what.parts[i].name][created] = token;
        }
        ++grants_;
        believed_[&what] = std::move(h);
        look();
    }
    void left(const claim& what) { believed_.erase(&what); }

    void changed() override {
        for (const auto& [key, kv] : etcd_.keys()) {
            const auto place = etcd::place_of_key(key);
            const auto note = etcd::note_of(kv.value);
            if (place && note) {
                entries_[{place->name, place->lease, note->info}] = {key, kv.create_revision};
            }
            alive_[key] = kv.create_revision;
        }
        std::erase_if(alive_, [&](const auto& one) {
            const auto at = etcd_.keys().find(one.first);
            if (at != etcd_.keys().end() && at->second.create_revision == one.second) return false;
            gone_.emplace(one, etcd_.revision());
            return true;
        });
        look();
    }

    void tokens_follow_the_queue() const {
        for (const auto& [name, all] : tokens_) {
            std::int64_t before = 0;
            for (const auto& [created, token] : all) {
                EXPECT_GT(token, before) << name << ", entered at " << created;
                before = token;
            }
        }
    }
    [[nodiscard]] std::size_t grants() const noexcept { return grants_; }

private:
    // Those that are believed to be held and still stand.
    void look() {
        std::map<std::string, std::vector<seat>> by_name;
        for (const auto& [what, h] : believed_) {
            const bool stands = std::all_of(h.entries.begin(), h.entries.end(), [&](const auto& e) {
                const auto at = etcd_.keys().find(e.first);
                return at != etcd_.keys().end() && at->second.create_revision == e.second;
            });
            if (!stands) continue;
            for (const auto& p : what->parts) by_name[p.name].push_back({p.kind, p.n});
        }
        for (const auto& [name, all] : by_name) {
            for (std::size_t i = 0; i < all.size(); ++i) {
                for (std::size_t k = 0; k < i; ++k) {
                    EXPECT_FALSE(conflicts(all[i], all[k])) << name << " is held twice";
                }
                if (all[i].kind == claim_kind::permit) {
                    EXPECT_LE(all.size(), all[i].n) << name << " has too many holders";
                }
            }
        }
    }

    sim::simulated_etcd& etcd_;
    // By name, lease and information, which each claim has of its own: where its entry is, and the
    // create_revision of that.
    std::map<std::tuple<std::string, std::int64_t, std::string>,
             std::pair<std::string, std::int64_t>>
        entries_;
    std::map<std::string, std::int64_t> alive_;
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> gone_;
    std::map<const claim*, held> believed_;
    std::map<std::string, std::map<std::int64_t, std::int64_t>> tokens_;
    std::size_t grants_ = 0;
};

// One process: a lease that it renews, and some who use it.
class client {
public:
    client(sim::world& w, sim::simulated_etcd& at, judge& j, std::string name)
        : world_(w),
          node_(w.add_node(std::move(name))),
          store_(node_, std::make_unique<sim::simulated_etcd_client>(node_, at)),
          judge_(j) {
        open();
    }
    [[nodiscard]] sim::node& at() noexcept { return node_; }
    [[nodiscard]] const std::string& lease() const noexcept { return lease_; }
    void calm_down() { quiet_ = true; }
    [[nodiscard]] std::size_t busy() const noexcept { return users_.size(); }

private:
    struct user {
        claim what;
        op step;
        op gone;
        op patience;
        bool held = false;
        bool leaving = false;
    };

    void open() {
        users_.clear();
        lease_.clear();
        opening_ = store_.open(life, "client", node_.now() + 3s,
                               [this](std::error_code error, detail::lease on) {
                                   if (error) {
                                       renewing_ = node_.after(200ms, [this] { open(); });
                                       return;
                                   }
                                   lease_ = on.id;
                                   renew();
                                   for (int i = 0; i < 3; ++i) next();
                               });
    }
    void renew() {
        renewing_ = node_.after(1s, [this] {
            opening_ = store_.renew(lease_, node_.now() + 2s,
                                    [this](std::error_code error, std::chrono::seconds) {
                                        if (error != errc::lost) {
                                            settle();
                                            return renew();
                                        }
                                        for (auto& one : users_) judge_.left(one->what);
                                        kept_.insert(kept_.end(), users_.begin(), users_.end());
                                        renewing_ = node_.after(1ms, [this] { open(); });
                                    });
        });
    }

    // As a session does: what hangs on the lease and is nobody's goes.
    void settle() {
        listing_ = store_.owned(
            lease_, node_.now() + 2s, [this](std::error_code, const std::vector<claim_id>& all) {
                for (const auto id : all) {
                    const bool wanted = std::any_of(users_.begin(), users_.end(),
                                                    [&](auto& one) { return one->what.id == id; });
                    if (wanted) continue;
                    settling_[id] =
                        store_.leave(lease_, id, node_.now() + 2s, [](std::error_code, int) {});
                }
            });
    }

    void next() {
        if (quiet_) return;
        auto u = std::make_shared<user>();
        u->what.id = {++ids_};
        u->what.info = "claim " + std::to_string(ids_);
        u->what.lease = lease_;
        u->what.only_if_free = world_.chance(0.2);
        const auto first = world_.below(3);
        for (auto i = first; i < 3; ++i) {
            if (i != first && !world_.chance(0.3)) continue;
            // Permits of a name agree in their number.
            const auto kind = static_cast<claim_kind>(world_.below(3));
            u->what.parts.push_back(
                {std::string("n") + std::to_string(i), kind, kind == claim_kind::permit ? 2U : 0U});
        }
        users_.push_back(u);
        u->step = node_.after(world_.between(1ms, 500ms), [this, p = u.get()] { enter(*p); });
    }
    void enter(user& u) {
        u.step = store_.enter(u.what, node_.now() + 2s, [this, &u](std::error_code error, place p) {
            if (error == errc::unknown_outcome && world_.chance(0.7)) return enter(u);
            if (error) return leave(u);
            if (p.granted && world_.chance(0.7)) return granted(u, {}, *p.granted);
            u.step = store_.await(
                u.what.lease, u.what.id, nullptr,
                [this, &u](std::error_code why, const grant& g) { granted(u, why, g); });
            u.patience = node_.after(world_.between(1s, 20s), [this, &u] {
                if (!quiet_ && !u.held) leave(u);
            });
        });
    }
    void granted(user& u, std::error_code error, const grant& g) {
        if (error) return leave(u);
        u.held = true;
        judge_.granted(u.what, g);
        u.gone = store_.on_gone(u.what.lease, u.what.id, [this, &u](std::error_code) { leave(u); });
        u.patience = node_.after(world_.between(1ms, 3s), [this, &u] { leave(u); });
    }
    void leave(user& u) {
        judge_.left(u.what);
        if (!std::exchange(u.leaving, true)) next();
        u.patience.cancel();
        u.gone.cancel();
        u.step = store_.leave(u.what.lease, u.what.id, node_.now() + 2s,
                              [this, &u](std::error_code error, int) {
                                  if (!error) return finished(u);
                                  u.step = node_.after(300ms, [this, &u] { leave(u); });
                              });
    }
    void finished(user& u) {
        const auto at = std::find_if(users_.begin(), users_.end(),
                                     [&](const auto& one) { return one.get() == &u; });
        if (at == users_.end()) return;
        kept_.push_back(*at);  // until its functions have returned, and for the judge's records
        users_.erase(at);
    }

    sim::world& world_;
    sim::node& node_;
    etcd_locks store_;
    judge& judge_;
    std::string lease_;
    std::uint64_t ids_ = 0;
    bool quiet_ = false;
    op opening_;
    op renewing_;
    op listing_;
    std::map<claim_id, op> settling_;
    std::vector<std::shared_ptr<user>> users_;
    std::vector<std::shared_ptr<user>> kept_;
};

struct scene {
    sim::world& w;
    sim::network& net;
    sim::simulated_etcd& etcd;
    std::vector<std::unique_ptr<client>>& clients;
};

void break_something(scene& s) {
    auto& somebody = *s.clients[s.w.below(s.clients.size())];
    auto& member = *s.etcd.members()[s.w.below(3)];
    switch (s.w.below(9)) {
        case 0: return member.pause_until(s.w.now() + s.w.between(10ms, 2 * life));
        case 1: return s.etcd.lose_leader(s.w.between(100ms, life));
        case 2: return s.etcd.compact();
        case 3: return s.etcd.lose_events(1 + s.w.below(2));
        case 4: return somebody.at().pause_until(s.w.now() + s.w.between(10ms, 2 * life));
        case 5:
            s.net.cut(somebody.at(), member);
            return s.w.schedule(s.w.between(50ms, 2 * life), [&net = s.net, &somebody, &member] {
                net.restore(somebody.at(), member);
            });
        case 6: return s.net.break_connections(member);
        case 7: {
            const auto lease = etcd::lease_number(somebody.lease());
            if (lease && s.w.chance(0.3)) s.etcd.revoke(*lease);
            return;
        }
        default: {
            if (s.etcd.keys().empty() || s.w.chance(0.5)) return;
            auto at = s.etcd.keys().begin();
            std::advance(at, s.w.below(s.etcd.keys().size()));
            etcd::txn_request ask;
            ask.success.emplace_back(etcd::erase_request{{at->first, {}}});
            (void)s.etcd.txn(ask);
        }
    }
}

void go_wild(scene& s, boot_clock::time_point until) {
    const auto wait = s.w.between(100ms, 2s);
    if (s.w.now() + wait >= until) return;
    s.w.schedule(wait, [&s, until] {
        break_something(s);
        go_wild(s, until);
    });
}

std::size_t run_history(std::uint64_t seed) {
    sim::world w(seed);
    sim::network net(w);
    net.set_faults({.p_drop = 0.01 * static_cast<double>(w.below(10)),
                    .delay_min = 1ms,
                    .delay_max = w.between(2ms, 100ms),
                    .p_slow = 0.01 * static_cast<double>(w.below(4)),
                    .slow_max = 3s});
    sim::simulated_etcd etcd(w, net, 3);
    judge j(etcd);
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(std::make_unique<client>(w, etcd, j, "client" + std::to_string(i)));
    }
    scene s{w, net, etcd, clients};
    go_wild(s, w.now() + wild);
    w.run_for(wild);
    net.heal();
    for (auto& c : clients) c->calm_down();
    w.run_for(calm);
    for (auto& c : clients) EXPECT_EQ(c->busy(), 0U) << "somebody did not get on";
    EXPECT_TRUE(etcd.keys().empty()) << etcd.keys().begin()->first << " was left behind";
    j.tokens_follow_the_queue();
    return j.grants();
}

std::uint64_t asked(const char* name, std::uint64_t otherwise) {
    const auto* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(EtcdRandom, NoTwoThatConflictAreGrantedAndEverybodyGetsOn) {
    const auto only = asked("TRINCO_ETCD_SEED", 0);
    const auto first = only == 0 ? 1 : only;
    const auto last = only == 0 ? asked("TRINCO_ETCD_SEEDS", 30) : only;
    std::size_t grants = 0;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        try {
            grants += run_history(seed);
        } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
        }
        if (HasFailure()) break;
    }
    EXPECT_GT(grants, (last - first + 1) * 20) << "too little happened";
}

}  // namespace
}  // namespace trinco::test
