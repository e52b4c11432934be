// Stores of memory as a program opens them: who sees whom, on real threads.
#include "trinco/memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/open.hpp"

namespace trinco {
namespace {

using namespace std::chrono_literals;
using detail::store_access;

constexpr auto patience = 10s;

// The answer of one call of a store, made on its loop. Waits for it.
template <class T, class Call>
std::pair<std::error_code, T> ask(detail::store_state& s, Call call) {
    struct waits {
        std::promise<std::pair<std::error_code, T>> answer;
        detail::op under_way;
    };
    const auto w = std::make_shared<waits>();
    auto answer = w->answer.get_future();
    s.on().post([w, &s, call = std::move(call)]() mutable {
        w->under_way = call(s, s.on().now() + patience, [w](std::error_code error, T value) {
            w->answer.set_value({error, std::move(value)});
            w->under_way.cancel();  // ends the circle w -> op -> completion -> w
        });
    });
    if (answer.wait_for(patience) != std::future_status::ready) return {errc::unknown_outcome, T{}};
    return answer.get();
}

std::error_code trip(const store& s, const std::string& breaker) {
    const auto state = store_access::state(s);
    return ask<detail::view>(*state,
                             [breaker](auto& st, auto by, auto done) {
                                 detail::control_request c;
                                 c.id = st.on().random();
                                 c.breaker = breaker;
                                 c.who = "test";
                                 c.reason = "planted";
                                 return st.breakers()->control(c, by, std::move(done));
                             })
        .first;
}

std::vector<std::string> breakers_of(const store& s) {
    const auto state = store_access::state(s);
    const auto [error, page] = ask<detail::page>(*state, [](auto& st, auto by, auto done) {
        return st.breakers()->inspect("", "", 100, by, std::move(done));
    });
    EXPECT_FALSE(error) << error.message();
    std::vector<std::string> names;
    for (const auto& row : page.rows) names.push_back(row.breaker);
    return names;
}

std::error_code write(const store& s, const std::string& key, const std::string& value) {
    const auto state = store_access::state(s);
    return ask<std::uint64_t>(*state,
                              [=](auto& st, auto by, auto done) {
                                  const detail::change one{key, value, detail::any_revision};
                                  return st.locks()->write("", std::nullopt, std::span(&one, 1), 1h,
                                                           by, std::move(done));
                              })
        .first;
}

std::string read(const store& s, const std::string& key) {
    const auto state = store_access::state(s);
    const auto [error, found] = ask<std::optional<detail::record>>(
        *state,
        [=](auto& st, auto by, auto done) { return st.locks()->read(key, by, std::move(done)); });
    EXPECT_FALSE(error) << error.message();
    return found ? found->value : "";
}

TEST(memory_store, two_stores_of_one_driver_and_name_see_each_other) {
    const auto memory = drivers::memory();
    const auto a = open("memory:", {memory});
    const auto b = open("memory:", {memory});
    ASSERT_TRUE(a.has_breakers() && a.has_locks());
    EXPECT_NE(&store_access::state(a)->on(), &store_access::state(b)->on());
    ASSERT_FALSE(trip(a, "payments"));
    EXPECT_EQ(breakers_of(b), std::vector<std::string>{"payments"});
    ASSERT_FALSE(write(a, "key", "value"));
    EXPECT_EQ(read(b, "key"), "value");
}

TEST(memory_store, names_and_drivers_are_apart_namespaces_for_breakers_only) {
    const auto memory = drivers::memory();
    const auto a = open("memory:", {memory});
    const auto named = open("memory:other", {memory});
    const auto stranger = open("memory:", {drivers::memory()});
    const auto staging = open("memory:", {memory}, {.name_space = "staging"});
    ASSERT_FALSE(trip(a, "payments"));
    ASSERT_FALSE(write(a, "key", "value"));
    EXPECT_TRUE(breakers_of(named).empty());
    EXPECT_TRUE(breakers_of(stranger).empty());
    EXPECT_TRUE(breakers_of(staging).empty());
    EXPECT_EQ(read(named, "key"), "");
    EXPECT_EQ(read(stranger, "key"), "");
    EXPECT_EQ(read(staging, "key"), "value");
}

TEST(memory_store, what_is_kept_outlives_the_stores_not_the_driver) {
    auto memory = drivers::memory();
    auto a = open("memory:", {memory});
    ASSERT_FALSE(write(a, "key", "value"));
    a.close();
    const auto again = open("memory:", {memory});
    EXPECT_EQ(read(again, "key"), "value");
}

TEST(memory_store, a_bad_name_is_one_sentence) {
    std::error_code error;
    std::string why;
    for (const std::string& url : std::vector<std::string>{"memory://host", "memory:a b",
                                                           "memory:" + std::string(65, 'x')}) {
        EXPECT_FALSE(open(url, {drivers::memory()}, {}, error, &why)) << url;
        EXPECT_EQ(error, errc::invalid) << url;
        EXPECT_NE(why.find("after memory:"), std::string::npos) << why;
    }
    EXPECT_TRUE(open("memory:" + std::string(64, 'x'), {drivers::memory()}, {}, error));
}

TEST(memory_store, a_driver_keeps_a_bounded_number_of_names) {
    const auto memory = drivers::memory();
    detail::event_loop idle;  // without the thread that trinco::open would start for each
    for (int i = 0; i < 1'024; ++i) {
        const auto name = "n" + std::to_string(i);
        const auto made = store_access::driver_of(memory)->open({"memory", name, "memory:" + name},
                                                                idle, "default", {"i", "v"});
        ASSERT_TRUE(made.breakers && made.locks);
    }
    std::error_code error;
    EXPECT_FALSE(open("memory:one-more", {memory}, {}, error));
    EXPECT_EQ(error, errc::busy);
    EXPECT_TRUE(open("memory:n7", {memory}, {}, error));
}

TEST(memory_store, a_driver_from_before_fork_is_refused_in_the_child) {
    const auto memory = drivers::memory();
    const auto pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        std::error_code error;
        const bool refused = !open("memory:", {memory}, {}, error) && error == errc::forked;
        const bool own = static_cast<bool>(open("memory:", {drivers::memory()}, {}, error));
        ::_exit(refused && own ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace trinco
