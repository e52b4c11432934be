// While a breaker is closed, and while it refuses, no memory is asked for. An executable of its
// own: it replaces operator new.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "trinco/circuit_breaker.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t n, std::size_t alignment) {
    ++allocations;
    void* const p =
        alignment <= alignof(std::max_align_t)
            ? std::malloc(n)
            : std::aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}

}  // namespace

void* operator new(std::size_t n) {
    return counted(n, 1);
}
void* operator new(std::size_t n, std::align_val_t a) {
    return counted(n, static_cast<std::size_t>(a));
}
// Inlined, it would be taken for a free of what new made.
[[gnu::noinline]] void operator delete(void* p) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
    std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
    std::free(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}

namespace trinco::test {
namespace {

using namespace std::chrono_literals;

template <class F>
std::uint64_t allocations_of(F f) {
    f();  // the first time may set a thread's number up
    const auto before = allocations.load();
    for (int i = 0; i < 1000; ++i) f();
    return allocations.load() - before;
}

TEST(Allocation, TheCounterCounts) {
    int* volatile kept = nullptr;  // what nobody sees the compiler may leave out
    EXPECT_GE(allocations_of([&] {
                  kept = new int(1);
                  delete kept;
              }),
              1000U);
}

TEST(Allocation, NoneForASuccessWhileClosed) {
    circuit_breaker b("b");
    EXPECT_EQ(allocations_of([&] { b.try_acquire().success(); }), 0U);
    EXPECT_EQ(allocations_of([&] { b.try_acquire().ignore(); }), 0U);
    EXPECT_EQ(allocations_of([&] { (void)b.call([] { return 1; }); }), 0U);
}

TEST(Allocation, NoneForFailuresBelowTheThresholds) {
    breaker_options o;
    o.failure_rate = 0.9;
    o.minimum_calls = 100'000;  // so that outcomes are watched all along
    circuit_breaker b("b", o);
    EXPECT_EQ(allocations_of([&] {
                  b.try_acquire().failure();
                  b.try_acquire().success();
              }),
              0U);
    EXPECT_EQ(b.state(), breaker_state::closed);
}

TEST(Allocation, NoneWithDurations) {
    breaker_options o;
    o.slow_call_after = 1h;
    circuit_breaker b("b", o);
    EXPECT_EQ(allocations_of([&] { b.try_acquire().success(); }), 0U);
}

TEST(Allocation, NoneWithACountWindow) {
    breaker_options o;
    o.count_window = 100;
    circuit_breaker b("b", o);
    EXPECT_EQ(allocations_of([&] {
                  b.try_acquire().success();
                  b.try_acquire().success();
                  b.try_acquire().failure();
              }),
              0U);
}

TEST(Allocation, NoneForARefusalWhileOpen) {
    circuit_breaker b("b");
    ASSERT_FALSE(b.trip("test", 1h));
    EXPECT_EQ(allocations_of([&] { EXPECT_FALSE(b.try_acquire()); }), 0U);
}

}  // namespace
}  // namespace trinco::test
