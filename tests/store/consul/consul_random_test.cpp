// Random histories: clients that enter, wait, hold and leave, a cluster and a network that fail in
// every way the simulator knows, operators that delete keys and sessions. Whatever happens, no name
// is believed in twice while its entries stand, and no semaphore by more than it has permits;
// tokens are the indexes of the entries and grow, nothing is granted after its entry is gone, what
// is believed in goes with its session or by an operator and not otherwise, nobody who has a permit
// is dropped by another; and when all is well again everybody gets on.
//
// TRINCO_CONSUL_SEEDS sets how many histories are run; 60 without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/simulated_consul_client.hpp"
#include "store/consul/consul_layout.hpp"
#include "store/consul/consul_locks.hpp"
#include "store/consul/consul_semaphore.hpp"
#include "trinco/error.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;
using namespace detail;

constexpr std::chrono::seconds life{10};  // of leases
constexpr auto wild = 90s;
constexpr auto calm = 90s;
constexpr auto proof_lasts = 5s;  // at most as long as its answer may take
const std::string semaphore = "p0";
constexpr std::uint32_t permits = 2;

// What the claims say of themselves, against what lies in Consul.
class judge final : public sim::consul_listener {
public:
    judge(sim::world& w, sim::simulated_consul& at) : world_(w), consul_(at) {
        consul_.listen(*this);
    }
    judge(const judge&) = delete;
    judge& operator=(const judge&) = delete;
    ~judge() override { consul_.forget(*this); }

    void granted(const claim& what, const grant& g) {
        if (what.parts[0].kind == claim_kind::permit) return permit_granted(what, g);
        std::vector<entry_of> held;
        for (std::size_t i = 0; i < what.parts.size(); ++i) {
            const auto& name = what.parts[i].name;
            const entry_of one{consul::lock_key("", name, false), g.tokens.at(i)};
            const auto seen = taken_.find(one);
            ASSERT_NE(seen, taken_.end()) << name << " has no entry of token " << one.second;
            EXPECT_EQ(seen->second, what.info) << name;
            const auto gone = gone_.find(one);
            if (gone != gone_.end()) {
                EXPECT_LE(world_.now() - gone->second, proof_lasts) << name << " was long gone";
            }
            EXPECT_TRUE(tokens_.insert(one).second) << name << " was granted twice";
            held.push_back(one);
        }
        ++grants_;
        believed_[&what] = std::move(held);
        look();
    }
    void permit_granted(const claim& what, const grant& g) {
        EXPECT_EQ(g.tokens.at(0), 0U) << "a permit is no fence";
        // The latest: an operator may have deleted one that nobody had heard of yet.
        auto seen = taken_.end();
        for (auto one = taken_.begin(); one != taken_.end(); ++one) {
            const bool own = one->second == what.info && one->first.first.starts_with(semaphore);
            if (!own) continue;
            if (seen == taken_.end() || seen->first.second < one->first.second) seen = one;
        }
        ASSERT_NE(seen, taken_.end()) << what.info << " has no contender";
        EXPECT_TRUE(tokens_.insert(seen->first).second) << what.info << " was granted twice";
        const auto gone = gone_.find(seen->first);
        if (gone != gone_.end()) {
            EXPECT_LE(world_.now() - gone->second, proof_lasts) << what.info << " was long gone";
        }
        ++permits_;
        believed_[&what] = {seen->first};
        granted_at_[&what] = world_.now();
        look();
    }
    void left(const claim& what) { believed_.erase(&what); }
    // An operator deletes it in this moment; where it lists who has the permits, those who had them
    // are told.
    void deletes(const std::string& key) {
        deleted_ = key;
        if (key == semaphore + "/.lock") list_gone_at_ = world_.now();
    }
    void has_deleted() { deleted_.clear(); }

    void changed() override {
        for (const auto& [key, kv] : consul_.all()) {
            const auto note = consul::note_of(kv.value);
            if (!note || kv.session.empty()) continue;
            const auto [at, is_new] = alive_.try_emplace(key, consul::id_of(kv), kv.modify_index);
            if (!is_new && at->second.first == consul::id_of(kv)) continue;
            if (!is_new) is_gone({key, at->second.second}, at->second.first);
            at->second = {consul::id_of(kv), kv.modify_index};
            taken_[{key, kv.modify_index}] = note->info;
        }
        for (const auto& [key, one] : alive_) {
            if (taken_.find({key, one.second}) == taken_.end()) {
                taken_[{key, one.second}] = consul::note_of(consul_.all().at(key).value)->info;
            }
        }
        std::erase_if(alive_, [&](const auto& one) {
            const auto at = consul_.all().find(one.first);
            const bool stands =
                at != consul_.all().end() && consul::is_entry(at->second, one.second.first);
            if (!stands) is_gone({one.first, one.second.second}, one.second.first);
            return !stands;
        });
        look();
    }
    void missed() override { changed(); }
    [[nodiscard]] std::size_t grants() const noexcept { return grants_; }
    [[nodiscard]] std::size_t permits_granted() const noexcept { return permits_; }

private:
    using entry_of = std::pair<std::string, std::uint64_t>;  // key and token

    void is_gone(const entry_of& one, const consul::entry_id& id) {
        gone_[one] = world_.now();
        if (one.first == deleted_ || !consul_.facts(id.session)) return;
        for (const auto& [what, held] : believed_) {
            if (std::find(held.begin(), held.end(), one) == held.end()) continue;
            const bool counts = what->parts[0].kind == claim_kind::permit;
            EXPECT_TRUE(counts && lost_its_list(*what)) << one.first << " went without any cause";
        }
    }
    [[nodiscard]] bool lost_its_list(const claim& permit) {
        return list_gone_at_ && *list_gone_at_ + proof_lasts >= granted_at_[&permit];
    }
    // Those that are believed to be held and still stand.
    void look() {
        std::map<std::string, int> by_name;
        for (const auto& [what, held] : believed_) {
            const bool stands = std::all_of(held.begin(), held.end(), [&](const auto& one) {
                const auto at = alive_.find(one.first);
                return at != alive_.end() && at->second.second == one.second;
            });
            if (!stands) continue;
            for (const auto& p : what->parts) {
                const bool counts = p.kind == claim_kind::permit;
                if (counts && !is_listed(*what, held.front().first)) continue;
                EXPECT_LE(++by_name[p.name], static_cast<int>(counts ? permits : 1))
                    << p.name << " is held by too many";
            }
        }
    }
    // Of a permit whose contender stands.
    bool is_listed(const claim& what, const std::string& contender) {
        const auto list = consul_.all().find(semaphore + "/.lock");
        const auto session = contender.substr(semaphore.size() + 1);
        const bool listed = list != consul_.all().end() && consul::has_place(list->second, session);
        EXPECT_TRUE(listed || lost_its_list(what)) << what.info << " was dropped from the holders";
        return listed;
    }

    sim::world& world_;
    sim::simulated_consul& consul_;
    std::map<std::string, std::pair<consul::entry_id, std::uint64_t>> alive_;  // by key
    std::map<entry_of, std::string> taken_;                                    // by whom
    std::map<entry_of, boot_clock::time_point> gone_;
    std::set<entry_of> tokens_;
    std::map<const claim*, std::vector<entry_of>> believed_;
    std::map<const claim*, boot_clock::time_point> granted_at_;
    std::string deleted_;
    std::optional<boot_clock::time_point> list_gone_at_;
    std::size_t grants_ = 0;
    std::size_t permits_ = 0;
};

// One process: a lease that it renews, and some who use it.
class client {
public:
    client(sim::world& w, sim::simulated_consul& at, judge& j, const std::string& name)
        : world_(w),
          name_(name),
          node_(w.add_node(name)),
          store_(node_, std::make_unique<sim::simulated_consul_client>(node_, at)),
          judge_(j) {
        open();
    }
    [[nodiscard]] sim::node& at() noexcept { return node_; }
    [[nodiscard]] const std::string& lease() const noexcept { return lease_; }
    void calm_down() { quiet_ = true; }
    [[nodiscard]] std::size_t busy() const noexcept { return users_.size(); }
    [[nodiscard]] std::string who_is_busy() const {
        std::string out = lease_;
        for (const auto& one : users_) {
            out += "; claim " + std::to_string(one->what.id.n) + " of";
            for (const auto& p : one->what.parts) out += ' ' + p.name;
            out += one->leaving ? " leaves" : one->held ? " holds" : " waits";
        }
        return out;
    }

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
                               [this](std::error_code error, const detail::lease& on) {
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
        renewing_ = node_.after(2s, [this] {
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
        u->what.info = name_ + " claim " + std::to_string(ids_);
        u->what.lease = lease_;
        u->what.only_if_free = world_.chance(0.2);
        const auto first = world_.below(4);
        if (first == 3) u->what.parts.push_back({semaphore, claim_kind::permit, permits});
        for (auto i = first; i < 3; ++i) {
            if (i != first && !world_.chance(0.3)) continue;
            u->what.parts.push_back(
                {std::string("n") + std::to_string(i), claim_kind::exclusive, 0});
        }
        users_.push_back(u);
        u->step = node_.after(world_.between(1ms, 500ms), [this, p = u.get()] { enter(*p); });
    }
    void enter(user& u) {
        u.step = store_.enter(u.what, node_.now() + 2s, [this, &u](std::error_code error, place) {
            if (error == errc::unknown_outcome && world_.chance(0.7)) return enter(u);
            if (error) return leave(u);
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
    const std::string name_;
    sim::node& node_;
    consul_locks store_;
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
    sim::simulated_consul& consul;
    std::vector<std::unique_ptr<client>>& clients;
    judge& j;
};

void break_something(scene& s) {
    auto& somebody = *s.clients[s.w.below(s.clients.size())];
    auto& server = *s.consul.servers()[s.w.below(3)];
    switch (s.w.below(12)) {
        case 0: return server.pause_until(s.w.now() + s.w.between(10ms, life));
        case 1: return s.consul.lose_leader(s.w.between(100ms, life / 2));
        case 2: return s.consul.restart_leader();
        case 3: return s.consul.depose_leader(s.w.between(100ms, life / 2));
        case 4: return somebody.at().pause_until(s.w.now() + s.w.between(10ms, 2 * life));
        case 5:
            s.net.cut(somebody.at(), server);
            return s.w.schedule(s.w.between(50ms, life), [&net = s.net, &somebody, &server] {
                net.restore(somebody.at(), server);
            });
        case 6: return s.net.break_connections(server);
        case 7:
            if (s.w.chance(0.3)) s.consul.destroy(somebody.lease());
            return;
        case 8: return s.consul.lose_news(1 + s.w.below(3));
        case 9: {  // what it asks comes much later than it waits for
            const auto late = s.w.now() + s.w.between(1s, life);
            for (auto* one : s.consul.servers()) s.net.clog(somebody.at(), *one, late);
            return;
        }
        case 10: return s.consul.deafen(s.w.between(1s, 60s), 0.5);
        default: {
            if (s.consul.all().empty() || s.w.chance(0.5)) return;
            auto at = s.consul.all().begin();
            std::advance(at, s.w.below(s.consul.all().size()));
            consul::operation away;
            away.verb = consul::operation::verb_t::erase;
            away.key = at->first;
            s.j.deletes(away.key);
            (void)s.consul.txn({{away}});
            s.j.has_deleted();
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

struct history {
    std::size_t grants = 0;
    std::size_t permits = 0;
    std::size_t lists_left = 0;
};

// A list of holders who are all dead, as one leaves it who could not be reached to its end; the
// next one who takes a permit drops them.
bool is_dead_list(const sim::simulated_consul& at, const consul::key_value& kv) {
    std::vector<consul::key_value> rows;
    for (const auto& [key, one] : at.all()) rows.push_back(one);
    const auto list = consul::state_of(rows, kv.key);
    return kv.key == semaphore + "/.lock" && !list.listed.empty() && list.alive.empty();
}

history run_history(std::uint64_t seed) {
    sim::world w(seed);
    sim::network net(w);
    net.set_faults({.p_drop = 0.01 * static_cast<double>(w.below(10)),
                    .p_duplicate = 0.01 * static_cast<double>(w.below(10)),
                    .delay_min = 1ms,
                    .delay_max = w.between(2ms, 100ms),
                    .p_slow = 0.01 * static_cast<double>(w.below(8)),
                    .slow_max = 8s});
    sim::simulated_consul consul(w, net, 3);
    judge j(w, consul);
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(std::make_unique<client>(w, consul, j, "client" + std::to_string(i)));
    }
    scene s{w, net, consul, clients, j};
    go_wild(s, w.now() + wild);
    w.run_for(wild);
    net.heal();
    for (auto& c : clients) c->calm_down();
    w.run_for(calm);
    for (auto& c : clients)
        EXPECT_EQ(c->busy(), 0U) << "somebody did not get on: " << c->who_is_busy();
    std::size_t lists_left = 0;
    for (const auto& [key, kv] : consul.all()) {
        if (is_dead_list(consul, kv)) {
            ++lists_left;
            continue;
        }
        ADD_FAILURE() << key << " of " << kv.session << " was left behind: " << kv.value;
    }
    for (const auto& one : consul.sessions()) {
        const bool lives = std::any_of(clients.begin(), clients.end(),
                                       [&](const auto& c) { return c->lease() == one.id; });
        EXPECT_TRUE(lives) << "the session " << one.name << " is nobody's";
    }
    return {j.grants(), j.permits_granted(), lists_left};
}

TEST(ConsulRandom, NoNameIsHeldTwiceAndEverybodyGetsOn) {
    const auto* const asked = std::getenv("TRINCO_CONSUL_SEEDS");
    const auto seeds = asked == nullptr ? 60ULL : std::strtoull(asked, nullptr, 10);
    history all;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const auto one = run_history(seed);
        all.grants += one.grants;
        all.permits += one.permits;
        all.lists_left += one.lists_left;
        if (HasFailure()) break;
    }
    EXPECT_GT(all.grants, seeds * 20) << "too little happened";
    EXPECT_GT(all.permits, seeds * 10) << "too little happened";
    EXPECT_LE(all.lists_left, seeds / 10) << "holders are hardly ever left in their list";
}

}  // namespace
}  // namespace trinco::test
