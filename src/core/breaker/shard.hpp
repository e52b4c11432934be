// Which of several copies of a counter this thread should use, so that two threads that run at the
// same time rarely write to the same cache line.
//
// Where the kernel tells each thread its CPU through memory (restartable sequences, which glibc
// 2.35 and later register) it is the CPU: no two threads run there at once, however many there are.
// Elsewhere it is a number given to each thread in turn at its first use. Cost: two loads. Mask it
// to the number of copies.
#pragma once

#include <cstddef>

#if defined(__linux__) && defined(__GLIBC__) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define TRINCO_HAS_RSEQ 1
#endif

namespace trinco::detail {

namespace shard_detail {
inline constinit thread_local std::size_t number_plus_one = 0;
[[nodiscard]] std::size_t assign() noexcept;
}  // namespace shard_detail

[[nodiscard]] inline std::size_t this_thread_shard() noexcept {
#ifdef TRINCO_HAS_RSEQ
    const auto* const here = reinterpret_cast<const volatile struct rseq*>(
        static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset);
    // Negative where it was never registered.
    if (const auto cpu = static_cast<int>(here->cpu_id); cpu >= 0 && __rseq_size != 0) [[likely]] {
        return static_cast<std::size_t>(cpu);
    }
#endif
    const std::size_t n = shard_detail::number_plus_one;
    return n != 0 ? n - 1 : shard_detail::assign();
}

}  // namespace trinco::detail
