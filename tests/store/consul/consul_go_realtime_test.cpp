// The library beside Go's own client on a real Consul: mutex and api.Lock, semaphore and
// api.Semaphore, as one crowd. Without Consul, or without Go, the tests are skipped.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/store/consul/test_consul.hpp"
#include "tests/store/go_client.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/consul.hpp"
#include "trinco/mutex.hpp"
#include "trinco/semaphore.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

constexpr int of_us = 10;
constexpr int of_go = 10;
constexpr int times = 3;
constexpr auto patience = 60s;

class ConsulGo : public testing::Test {
protected:
    void SetUp() override {
        const auto consul = find_consul();
        const auto go = find_consul_go_client();
        if (!consul || !go) GTEST_SKIP() << "no Consul, or none of its client of Go";
        server_.emplace(consul_settings{.program = *consul});
        for (int i = 0; i < 2; ++i) {
            others_.push_back(std::make_unique<go_client>(*go, server_->address()));
        }
    }
    // All of both kinds at once: `ours` each in a thread and with a session of its own, the others
    // by this command.
    void crowd(const std::string& options, const std::string& command,
               const std::function<void(session&, int)>& ours) {
        const auto where =
            trinco::open("consul://" + server_->address() + options, {trinco::drivers::consul()});
        for (int i = 0; i < of_go; ++i) {
            others_[static_cast<std::size_t>(i % 2)]->send("g" + std::to_string(i), command);
        }
        std::vector<std::thread> threads;
        for (int i = 0; i < of_us; ++i) {
            threads.emplace_back([&, i] {
                try {
                    session on(where);
                    ours(on, i);
                } catch (const std::exception& e) {
                    ADD_FAILURE() << e.what();
                }
            });
        }
        for (auto& one : threads) one.join();
    }
    // That each of Go's had its turns: its one word is this.
    void expect_all_said(const std::string& word) {
        const auto by = std::chrono::steady_clock::now() + patience;
        for (int i = 0; i < of_go; ++i) {
            auto& from = *others_[static_cast<std::size_t>(i % 2)];
            const auto who = "g" + std::to_string(i);
            while (from.said(who).empty() && std::chrono::steady_clock::now() < by) {
                ::poll(nullptr, 0, 10);
            }
            EXPECT_EQ(from.said(who), std::vector{word}) << who;
        }
    }
    // But for what Go's leave behind: keys that nobody holds.
    void expect_nothing_left() {
        others_.clear();
        wait_for("the end of all sessions",
                 [&] { return server_->must("GET", "/v1/session/list") == "[]"; });
        const auto keys = server_->ask("GET", "/v1/kv/?recurse").body;  // 404: there are none
        EXPECT_EQ(keys.find("\"Session\""), std::string::npos) << keys;
        EXPECT_EQ(keys.find("Key\""), keys.rfind("Key\"")) << keys;
    }

    [[nodiscard]] std::string file(const std::string& name) const {
        return (folder_.path() / name).string();
    }
    void note(const std::string& name, const std::string& line) const {
        std::ofstream(file(name), std::ios::app) << line + '\n';
    }
    [[nodiscard]] std::vector<std::string> lines(const std::string& name) const {
        std::ifstream in(file(name));
        std::vector<std::string> all;
        for (std::string line; std::getline(in, line);) all.push_back(line);
        return all;
    }

    // As Go's visit does it: a folder that only one can make, and one more in a file.
    void visit() const {
        EXPECT_EQ(::mkdir(file("in").c_str(), 0700), 0) << "somebody else is in";
        const auto said = lines("counter");
        const int before = said.empty() ? 0 : std::stoi(said[0]);
        ::poll(nullptr, 0, 20);
        std::ofstream(file("counter")) << before + 1 << '\n';
        EXPECT_EQ(::rmdir(file("in").c_str()), 0);
    }
    void exclude(const std::string& options, const std::string& key) {
        std::mutex m;
        std::vector<std::uint64_t> tokens;
        crowd(options, "visit " + key + " " + std::to_string(times) + " " + folder_.path().string(),
              [&](session& on, int) {
                  mutex one(on, "n");
                  for (int i = 0; i < times; ++i) {
                      const std::lock_guard hold(one);
                      visit();
                      const std::lock_guard noting(m);
                      tokens.push_back(one.fencing_token());
                  }
              });
        expect_all_said("visited");
        EXPECT_EQ(lines("counter"), std::vector{std::to_string((of_us + of_go) * times)});
        EXPECT_EQ(lines("violations"), std::vector<std::string>());
        EXPECT_EQ(tokens.size(), static_cast<std::size_t>(of_us * times));
        EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end(), std::less_equal<>()));
        expect_nothing_left();
    }

    scratch_folder folder_;
    std::optional<test_consul> server_;
    std::vector<std::unique_ptr<go_client>> others_;
};

TEST_F(ConsulGo, TwentyOfBothKindsHaveAMutexOneAfterAnother) {
    exclude("", "n/.lock");
}

TEST_F(ConsulGo, AndWhereTheNameIsTheKey) {
    exclude("?keys=plain", "n");
}

TEST_F(ConsulGo, OfTwentyOfBothKindsNeverMoreThanThreeHoldASemaphore) {
    constexpr int most = 3;
    std::atomic<bool> full = false;
    const auto command = "stay n " + std::to_string(most) + " " + std::to_string(times) + " " +
                         folder_.path().string();
    crowd("", command, [&](session& on, int who) {
        semaphore places(on, "n", most);
        const auto mine = file("in-ours" + std::to_string(who));
        for (int i = 0; i < times; ++i) {
            places.acquire();
            std::ofstream(mine).flush();
            // Whoever is in stays until so many have been in at a time, once.
            const auto by = std::chrono::steady_clock::now() + 20s;
            do {
                int inside = 0;
                for (const auto& one : std::filesystem::directory_iterator(folder_.path())) {
                    inside += one.path().filename().string().starts_with("in-");
                }
                EXPECT_LE(inside, most);
                if (inside == most) full = true;
                ::poll(nullptr, 0, 20);
            } while (!full && std::chrono::steady_clock::now() < by);
            note("numbers", "of us");
            std::filesystem::remove(mine);
            places.release();
        }
    });
    expect_all_said("stayed");
    EXPECT_TRUE(full) << "one after another";
    EXPECT_EQ(lines("violations"), std::vector<std::string>());
    EXPECT_EQ(lines("numbers").size(), static_cast<std::size_t>((of_us + of_go) * times));
    expect_nothing_left();
}

}  // namespace
}  // namespace trinco::detail::test
