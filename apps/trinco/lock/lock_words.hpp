// Words and sentences of `trinco lock` about a lock, its queue and times.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/trinco/lock/contender.hpp"

namespace trinco::program {

// How long the store's answer to giving back is waited for.
inline constexpr std::chrono::milliseconds answer_patience{2'500};
inline constexpr const char* store_is_gone = "the file of its store was removed or replaced";

// Never negative.
[[nodiscard]] std::chrono::milliseconds whole(std::chrono::nanoseconds d);

// "held for 3 s by "vm:1234 backup"; 2 wait"; empty when nobody holds it or waits.
[[nodiscard]] std::string holders_words(const std::vector<detail::entry>& queue,
                                        const contender& own);
// "2 ahead; held for 3 s by ..."; of one that is not listed itself, as where a store keeps no
// order, "it waits; held for ...", and nothing when nobody holds it.
[[nodiscard]] std::string place_words(const std::vector<detail::entry>& queue,
                                      const contender& own);
// What of that is news to who waits, and not only older: how many are ahead, and who has it. To be
// compared, not read.
[[nodiscard]] std::string place_of(const std::vector<detail::entry>& queue,
                                   const std::function<bool(const detail::entry&)>& is_own);
// Who asked for it back: "root@vm asked for it back ("maintenance")".
[[nodiscard]] std::string eviction_words(const std::vector<detail::entry>& queue,
                                         const contender& own);
// Also of less than a millisecond: "0.4 ms".
[[nodiscard]] std::string short_time_words(std::chrono::nanoseconds d);

}  // namespace trinco::program
