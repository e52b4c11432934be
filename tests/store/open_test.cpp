#include "store/open.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/shown_url.hpp"
#include "trinco/store.hpp"

namespace trinco {
namespace {

using namespace std::chrono_literals;
using detail::completion;
using detail::deadline;
using detail::op;

// What happened to the stores of a fake driver, seen from outside.
struct journal {
    std::atomic<int> opened = 0;
    std::atomic<int> stopped = 0;
    std::atomic<int> destroyed = 0;
    std::atomic<int> off_thread = 0;  // calls that did not come on the loop's thread
    std::atomic<bool> answers_stop = true;
    std::string scheme, rest, shown, name_space;
    detail::breaker_identity who;
};

class fake_breakers final : public detail::breaker_store {
public:
    fake_breakers(detail::event_loop& on, std::shared_ptr<journal> log)
        : on_(on), log_(std::move(log)) {
        ++log_->opened;
        note_thread();
    }
    ~fake_breakers() override {
        ++log_->destroyed;
        note_thread();
    }
    op exchange(std::span<const detail::news>, deadline,
                completion<std::vector<detail::verdict>>) override {
        return {};
    }
    op look(const detail::look_request&, deadline, completion<detail::glance>) override {
        return {};
    }
    op probe(const detail::probe_request&, deadline, completion<detail::probe_reply>) override {
        return {};
    }
    op control(const detail::control_request&, deadline, completion<detail::view>) override {
        return {};
    }
    op inspect(std::string_view, std::string_view, std::size_t, deadline,
               completion<detail::page>) override {
        return {};
    }
    op subscribe(detail::unique_function<void(const detail::notice&)>) override { return {}; }
    op stop(deadline, completion<int> done) override {
        ++log_->stopped;
        note_thread();
        if (!log_->answers_stop) return {};
        return on_.after(0ms, [d = std::move(done)]() mutable { d({}, 0); });
    }

private:
    void note_thread() {
        if (!on_.on_thread()) ++log_->off_thread;
    }
    detail::event_loop& on_;
    std::shared_ptr<journal> log_;
};

class fake_driver final : public detail::store_driver {
public:
    fake_driver(std::vector<std::string_view> schemes, std::shared_ptr<journal> log)
        : schemes_(std::move(schemes)), log_(std::move(log)) {}

    std::span<const std::string_view> schemes() const noexcept override { return schemes_; }
    detail::opened_stores open(const detail::store_url& url, detail::event_loop& on,
                               std::string_view name_space,
                               const detail::breaker_identity& who) override {
        if (url.rest == "bad") {
            throw open_error(errc::invalid, "the fake does not like " + url.shown);
        }
        if (url.rest == "denied") throw open_error(errc::denied, "the fake denies it");
        if (url.rest == "broken") throw std::runtime_error("planted");
        log_->scheme = url.scheme;
        log_->rest = url.rest;
        log_->shown = url.shown;
        log_->name_space = name_space;
        log_->who = who;
        return {std::make_unique<fake_breakers>(on, log_), nullptr};
    }

private:
    std::vector<std::string_view> schemes_;
    std::shared_ptr<journal> log_;
};

class opening : public testing::Test {
protected:
    opening() { ::unsetenv("TRINCO_INSTANCE"); }
    ~opening() override { ::unsetenv("TRINCO_INSTANCE"); }

    // Code and sentence of a refused URL; fails the test when it is not refused.
    std::pair<std::error_code, std::string> refused(std::string_view url,
                                                    const store_settings& settings = {}) {
        std::error_code error;
        std::string why;
        const auto s = open(url, {fake_}, settings, error, &why);
        EXPECT_FALSE(s) << url;
        EXPECT_TRUE(error) << url;
        return {error, why};
    }

    std::shared_ptr<journal> log_ = std::make_shared<journal>();
    driver fake_{
        std::make_shared<fake_driver>(std::vector<std::string_view>{"fake", "fakes"}, log_)};
};

TEST_F(opening, has_no_thread_where_the_caller_wants_to_be_it) {
    const auto s = detail::open_without_thread("fake:x", std::array{fake_}, {});
    auto& on = detail::store_access::state(s)->on();
    EXPECT_TRUE(on.on_thread());
    std::thread::id ran;
    on.post([&] { ran = std::this_thread::get_id(); });
    EXPECT_TRUE(on.run_here([&] { return ran != std::thread::id(); }, on.now() + 10s));
    EXPECT_EQ(ran, std::this_thread::get_id());
    on.start();
    EXPECT_FALSE(on.on_thread());
    EXPECT_EQ(log_->off_thread, 0);
}

TEST_F(opening, gives_the_driver_the_url_and_the_names) {
    const auto s = open("FAKES://me:secret@host:1/x", {fake_},
                        {.name_space = "prod", .instance = "i-1", .voter = "rack-7"});
    ASSERT_TRUE(s);
    EXPECT_EQ(log_->scheme, "fakes");
    EXPECT_EQ(log_->rest, "//me:secret@host:1/x");
    EXPECT_EQ(log_->shown, "FAKES://***@host:1/x");
    EXPECT_EQ(s.url(), "FAKES://***@host:1/x");
    EXPECT_EQ(log_->name_space, "prod");
    EXPECT_EQ(log_->who.instance, "i-1");
    EXPECT_EQ(log_->who.voter, "rack-7");
    EXPECT_EQ(s.name_space(), "prod");
    EXPECT_EQ(s.instance(), "i-1");
    EXPECT_EQ(s.voter(), "rack-7");
    EXPECT_TRUE(s.has_breakers());
    EXPECT_FALSE(s.has_locks());
}

TEST_F(opening, every_store_is_an_instance_of_its_own_of_the_same_voter) {
    const auto a = open("fake:", {fake_});
    const auto b = open("fake:", {fake_});
    EXPECT_EQ(a.name_space(), "default");
    EXPECT_NE(a.instance(), b.instance());
    EXPECT_EQ(a.voter(), b.voter());
    EXPECT_FALSE(a.voter().empty());
}

TEST_F(opening, the_environment_names_the_voter_and_the_settings_go_before_it) {
    ::setenv("TRINCO_INSTANCE", "from-env", 1);
    EXPECT_EQ(open("fake:", {fake_}).voter(), "from-env");
    EXPECT_EQ(open("fake:", {fake_}, {.voter = "said"}).voter(), "said");
    ::setenv("TRINCO_INSTANCE", "not a name", 1);
    const auto [code, why] = refused("fake:");
    EXPECT_EQ(code, errc::invalid);
    EXPECT_NE(why.find("TRINCO_INSTANCE"), std::string::npos) << why;
    EXPECT_NE(why.find("not a name"), std::string::npos) << why;
}

TEST_F(opening, bad_urls_are_refused_with_what_value_and_what_is_there) {
    struct expectation {
        std::string url;
        errc code;
        std::vector<std::string> says;
    };
    const std::vector<expectation> all{
        {"", errc::invalid, {"empty", "fake:, fakes:"}},
        {"localhost", errc::invalid, {"\"localhost\"", "scheme", "fake:, fakes:"}},
        {":x", errc::invalid, {"\":x\"", "scheme"}},
        {"1x:y", errc::invalid, {"\"1x:y\"", "scheme"}},
        {"host name:1", errc::invalid, {"\"host name:1\"", "scheme"}},
        {"redis://u:pw@h",
         errc::not_supported,
         {"\"redis://***@h\"",
          "fake:, fakes:", "pass trinco::drivers::redis() of trinco/redis.hpp"}},
        {"redis+unix:/r", errc::not_supported, {"pass trinco::drivers::redis()"}},
        {"redsi://h", errc::not_supported, {"did you mean redis:?"}},
        {"rediss+sentinel://h", errc::not_supported, {"did you mean redis+sentinel:?"}},
        {"valkeys://h", errc::not_supported, {"begin the URL with redis: or rediss:"}},
        {"ETCD://h1,h2", errc::not_supported, {"pass trinco::drivers::etcd() of trinco/etcd.hpp"}},
        {"consuls://h",
         errc::not_supported,
         {"pass trinco::drivers::consul() of trinco/consul.hpp"}},
        {"consul://h?token=pw-1&dc=x", errc::not_supported, {"\"consul://h?token=***\""}},
        {"zookeeper://h", errc::not_supported, {"stores of zookeeper: are not in this version"}},
        {"mem:", errc::not_supported, {"did you mean memory:?"}},
        {"fkae:", errc::not_supported, {"did you mean fake:?"}},
        {"lcal:/x", errc::not_supported, {"did you mean local:?"}},
        {"memory:", errc::not_supported, {"pass trinco::drivers::memory() of trinco/memory.hpp"}},
        {"local:", errc::not_supported, {"pass trinco::drivers::local() of trinco/local.hpp"}},
        {"tape:",
         errc::not_supported,
         {"drivers for: fake:, fakes:; ", "memory:, local:, redis:, etcd: and consul:"}},
        {"user:pw@h", errc::not_supported, {"\"user:***@h\""}},
        {"x" + std::string(5'000, 'y'), errc::invalid, {"5001 bytes", "4096"}},
        {"fake:bad", errc::invalid, {"does not like fake:bad"}},
        {"fake:denied", errc::denied, {"denies"}},
        {"fake:broken", errc::unavailable, {"\"fake:broken\"", "planted"}},
    };
    for (const auto& e : all) {
        const auto [code, why] = refused(e.url);
        EXPECT_EQ(code, e.code) << e.url;
        for (const auto& word : e.says) EXPECT_NE(why.find(word), std::string::npos) << why;
        EXPECT_EQ(why.find("pw"), std::string::npos) << why;
        EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    }
}

TEST_F(opening, an_empty_driver_is_refused) {
    driver gone = fake_;
    const driver taken = std::move(gone);
    const driver nothing{nullptr};
    for (const auto& empty : {gone, nothing}) {  // NOLINT(bugprone-use-after-move): it is the point
        for (const auto* url : {"fake:", "", "memory:"}) {
            std::error_code error;
            std::string why;
            EXPECT_FALSE(open(url, {fake_, empty}, {}, error, &why));
            EXPECT_EQ(error, errc::invalid);
            EXPECT_NE(why.find("moved from"), std::string::npos) << why;
        }
    }
    EXPECT_TRUE(open("fake:", {taken}));
}

TEST(shown_url, hides_whatever_may_be_a_secret) {
    const std::vector<std::pair<const char*, const char*>> all{
        {"redis://host:1/2?db=3", "redis://host:1/2?db=3"},
        {"memory:", "memory:"},
        {"", ""},
        {"redis://user:pw@host", "redis://***@host"},
        {"redis://pw@host", "redis://***@host"},
        {"redis://user:p/w@host/1", "redis://***@host/1"},
        {"redis://user:p?w#p@w@host:1", "redis://***@host:1"},
        {"redis:user:pw@host", "redis:***@host"},
        {"redis:/user:pw//pw@host", "redis:/***@host"},
        {"redis:\\\\user:pw@host", "redis:\\\\***@host"},
        {"re dis://user:pw@host", "***@host"},
        {"//user:pw@host", "//***@host"},
        {"pw@host", "***@host"},
        {"redis://host?password=pw", "redis://host?password=***"},
        {"redis://host?db=1&PASS=pw&x=pw", "redis://host?db=1&PASS=***"},
        {"redis://host?a=1;token=pw", "redis://host?a=1;token=***"},
        {"redis://host?client_secret=pw#pw", "redis://host?client_secret=***"},
        {"redis://host#auth=pw", "redis://host#auth=***"},
        {"redis://host?p%61ss=pw", "redis://host?p%61ss=***"},
        {"redis://host?api_key=pw", "redis://host?api_key=***"},
        {"redis://user:pw@host?auth=pw", "redis://***@host?auth=***"},
        {"redis://user:pw?token=pw@host", "redis://***"},
        {"redis://host?password=p@w", "redis://***"},
        {"local:/run/shop@1/trinco.db", "local:/run/shop@1/trinco.db"},
        {"local:/x?password=pw", "local:/x?password=***"},
        {"local://user:pw@host", "local://***@host"},
    };
    for (const auto& [url, shown] : all) EXPECT_EQ(detail::shown_url(url), shown) << url;
}

TEST_F(opening, bad_names_and_settings_are_refused) {
    EXPECT_NE(refused("fake:", {.name_space = "a b"}).second.find("a b"), std::string::npos);
    EXPECT_NE(refused("fake:", {.name_space = ""}).second.find("1"), std::string::npos);
    EXPECT_NE(refused("fake:", {.instance = "a/b"}).second.find("a/b"), std::string::npos);
    EXPECT_NE(refused("fake:", {.voter = "a/b"}).second.find("a/b"), std::string::npos);
    EXPECT_NE(refused("fake:", {.close_timeout = -1ms}).second.find("-1 ms"), std::string::npos);
    EXPECT_NE(refused("fake:", {.close_timeout = 61s}).second.find("60 s"), std::string::npos);
    EXPECT_EQ(log_->opened, 0);
}

TEST_F(opening, throws_the_same_sentence) {
    try {
        static_cast<void>(open("nothing:", {fake_}));
        FAIL() << "was opened";
    } catch (const open_error& e) {
        EXPECT_EQ(e.code(), errc::not_supported);
        EXPECT_EQ(std::string(e.what()), refused("nothing:").second);
    }
    EXPECT_THROW(static_cast<void>(open("nothing:", std::initializer_list<driver>{})), open_error);
}

TEST_F(opening, two_drivers_of_one_scheme_are_refused_the_same_one_twice_is_not) {
    const driver other{std::make_shared<fake_driver>(std::vector<std::string_view>{"fake"}, log_)};
    EXPECT_TRUE(open("fake:", {fake_, fake_}));
    std::error_code error;
    EXPECT_FALSE(open("fake:", {fake_, other}, {}, error));
    EXPECT_EQ(error, errc::invalid);
}

TEST_F(opening, closing_stops_and_destroys_the_stores_on_their_thread) {
    auto a = open("fake:", {fake_});
    auto b = std::move(a);
    EXPECT_FALSE(a);
    EXPECT_TRUE(b);
    EXPECT_EQ(log_->stopped, 0);
    b.close();
    EXPECT_FALSE(b);
    EXPECT_EQ(b.url(), "");
    EXPECT_EQ(log_->stopped, 1);
    EXPECT_EQ(log_->destroyed, 1);
    EXPECT_EQ(log_->off_thread, 0);
}

TEST_F(opening, what_was_made_from_a_store_keeps_it_open) {
    auto s = open("fake:", {fake_});
    auto kept = detail::store_access::state(s);
    s.close();
    EXPECT_EQ(log_->stopped, 0);
    EXPECT_FALSE(kept->check());
    EXPECT_NE(kept->breakers(), nullptr);
    EXPECT_EQ(kept->locks(), nullptr);
    kept.reset();
    EXPECT_EQ(log_->destroyed, 1);
}

TEST_F(opening, a_store_that_does_not_stop_is_left_after_the_close_timeout) {
    log_->answers_stop = false;
    auto s = open("fake:", {fake_}, {.close_timeout = 10ms});
    const auto begin = std::chrono::steady_clock::now();
    s.close();
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, 10ms);
    EXPECT_LT(took, 5s);
    EXPECT_EQ(log_->stopped, 1);
    EXPECT_EQ(log_->destroyed, 1);
    EXPECT_EQ(log_->off_thread, 0);
}

TEST_F(opening, the_last_owner_may_be_a_callback_on_its_own_loop) {
    auto s = open("fake:", {fake_});
    auto state = detail::store_access::state(s);
    s.close();
    std::promise<void> released;
    auto& on = state->on();
    on.post([last = std::move(state), &released]() mutable {
        last.reset();  // must not wait for its own thread
        released.set_value();
    });
    EXPECT_EQ(released.get_future().wait_for(10s), std::future_status::ready);
    // The loop ends with the store, soon after.
    const auto bound = std::chrono::steady_clock::now() + 10s;
    while (log_->destroyed == 0 && std::chrono::steady_clock::now() < bound)
        std::this_thread::yield();
    EXPECT_EQ(log_->destroyed, 1);
    EXPECT_EQ(log_->off_thread, 0);
}

TEST_F(opening, in_a_child_it_says_forked_and_ends_harmlessly) {
    auto s = open("fake:", {fake_});
    const auto pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        const bool told = detail::store_access::state(s)->check() == errc::forked;
        s.close();
        ::_exit(told && log_->destroyed == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(detail::store_access::state(s)->check());
}

}  // namespace
}  // namespace trinco
