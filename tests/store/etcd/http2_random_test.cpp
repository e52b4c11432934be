// Members that answer, refuse, go, break and babble at random, while callers call, drop and begin
// anew at random, also from what they are told: every call is answered once, by its deadline, and
// nothing that was dropped is. TRINCO_SEED replays one seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "http2_members.hpp"
#include "sim/world.hpp"
#include "store/etcd/http2_transport.hpp"

namespace trinco::detail::test {
namespace {

using namespace etcd;
using namespace std::chrono_literals;

class random_callers {
public:
    explicit random_callers(std::uint64_t seed) : world_(seed) {
        by_ = make_http2_transport(
            at_, std::move(members_.streams),
            {stream_address::tcp("10.0.0.1", 2379), stream_address::tcp("10.0.0.2", 2379)}, {});
        members_.all->heard = [this, heard = members_.all->heard](scripted_wire& wire) {
            if (broken_.count(&wire) == 0) heard(wire);
        };
    }
    void run() {
        for (int i = 0; i < 150; ++i) {
            act();
            if (draw(3) == 0) serve();
            world_.run_for(world_.between(0ms, 200ms));
        }
        world_.run_for(20s);
        for (const auto& one : calls_) {
            EXPECT_TRUE(one->answers == 1 || one->dropped) << "never answered";
            EXPECT_LE(one->answers, 1);
        }
        const auto wires = members_.all->wires;  // which goes with the transport
        streams_.clear();
        calls_.clear();
        by_.reset();
        for (const auto& wire : wires) EXPECT_FALSE(wire->open);
    }
    [[nodiscard]] int good() const noexcept { return good_; }
    [[nodiscard]] int bad() const noexcept { return bad_; }

private:
    struct caller {
        deadline by{};
        int answers = 0;
        bool dropped = false;
        op interest;
    };
    std::uint64_t draw(std::uint64_t n) { return world_.below(n); }
    destination somewhere() { return {draw(2), static_cast<lane>(draw(3))}; }

    void act() {
        switch (draw(8)) {
            case 0: by_->renew(somewhere()); break;
            case 1: drop_one(); break;
            case 2: open(); break;
            case 3:
                if (!streams_.empty()) streams_[draw(streams_.size())]->send("more");
                break;
            case 4:
                if (!streams_.empty()) streams_.erase(streams_.begin());
                break;
            default: call();
        }
    }
    void call() {
        const auto one = std::make_shared<caller>();
        one->by = at_.now() + world_.between(1ms, 3s);
        calls_.push_back(one);
        const auto size = draw(10) == 0 ? 200'000 : draw(100);
        one->interest = by_->call(somewhere(), "/a/b", std::string(size, 'x'), {}, one->by,
                                  [this, one = one.get()](const wire_status& s, std::string reply) {
                                      ++one->answers;
                                      EXPECT_FALSE(one->dropped);
                                      EXPECT_LE(at_.now(), one->by);
                                      EXPECT_EQ(s.good(), reply == "!") << s.text;
                                      ++(s.good() ? good_ : bad_);
                                      if (draw(4) == 0) act();
                                  });
    }
    void drop_one() {
        if (calls_.empty()) return;
        const auto one = calls_[draw(calls_.size())];
        if (one->answers > 0) return;
        one->dropped = true;
        one->interest.cancel();
    }
    void open() {
        streams_.push_back(by_->open(
            somewhere(), "/a/b", {},
            [this](const std::string&) {
                if (draw(4) == 0) act();
            },
            [this](const wire_status&) {
                if (draw(4) == 0) act();
            }));
    }

    // Something happens at a connection.
    void serve() {
        if (draw(10) == 0) members_.all->otherwise = static_cast<scripted_server::door>(draw(3));
        for (std::size_t n = 0; n < members_.all->wires.size(); ++n) {
            const auto& wire = members_.all->wires[n];
            if (!wire->open || broken_.count(wire.get()) != 0 || draw(3) == 0) continue;
            auto& peer = members_.peer(n);
            for (auto& asked : peer.requests()) answer(n, peer, asked);
            const auto how = draw(40);
            if (how == 0) peer.goaway(static_cast<std::int32_t>(draw(20)) * 2 + 1, 0);
            if (how > 3 || how == 0) continue;
            broken_.insert(wire.get());
            if (how == 1) wire->end();
            if (how == 2) wire->reset();
            if (how == 3) wire->say(std::string(1 + draw(50), static_cast<char>(draw(256))));
        }
        members_.say();
    }
    void answer(std::size_t n, http2_peer& peer, http2_peer::request& asked) {
        if (!asked.whole || asked.given_up || !answered_.insert({n, asked.id}).second) return;
        switch (draw(6)) {
            case 0: peer.refuse(asked.id, 14, "etcdserver: no leader"); break;
            case 1: peer.reset(asked.id, static_cast<std::uint32_t>(draw(14))); break;
            case 2: answered_.erase({n, asked.id}); break;  // later
            default: peer.answer(asked.id, "!");
        }
    }

    sim::world world_;
    sim::node& at_{world_.add_node("client")};
    http2_members members_{at_};
    std::unique_ptr<transport> by_;
    std::vector<std::shared_ptr<caller>> calls_;
    std::vector<std::unique_ptr<wire_stream>> streams_;
    std::set<const scripted_wire*> broken_;
    std::set<std::pair<std::size_t, std::int32_t>> answered_;
    int good_ = 0;
    int bad_ = 0;
};

TEST(Http2Random, every_call_is_answered_once_whatever_happens) {
    const char* fixed = std::getenv("TRINCO_SEED");
    const unsigned first = fixed != nullptr ? static_cast<unsigned>(std::atoi(fixed)) : 1;
    const unsigned last = fixed != nullptr ? first : 400;
    int good = 0;
    int bad = 0;
    for (unsigned seed = first; seed <= last; ++seed) {
        random_callers of(seed);
        of.run();
        good += of.good();
        bad += of.bad();
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    }
    EXPECT_TRUE(fixed != nullptr || (good > 5'000 && bad > 5'000)) << good << " " << bad;
}

}  // namespace
}  // namespace trinco::detail::test
