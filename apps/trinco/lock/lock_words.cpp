#include "apps/trinco/lock/lock_words.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::entry;

constexpr std::size_t info_shown = 120;

const entry* own_entry(const std::vector<entry>& queue, const contender& own) {
    const auto at =
        std::find_if(queue.begin(), queue.end(), [&](const entry& e) { return own.is_own(e); });
    return at == queue.end() ? nullptr : &*at;
}

}  // namespace

std::chrono::milliseconds whole(std::chrono::nanoseconds d) {
    return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(d), 0ms);
}

std::string holders_words(const std::vector<entry>& queue, const contender& own) {
    std::string text;
    std::size_t waiting = 0;
    std::size_t more = 0;
    for (const entry& e : queue) {
        if (own.is_own(e)) continue;
        if (!e.holds) {
            ++waiting;
        } else if (text.empty()) {
            text = "held" + age_words(e) + " by " + owner_words(e, info_shown);
        } else {
            ++more;
        }
    }
    if (more > 0) text += " and " + std::to_string(more) + " more";
    if (waiting > 0) {
        text += (text.empty() ? "" : "; ") + std::to_string(waiting) +
                (waiting == 1 ? " waits" : " wait");
    }
    return text;
}

std::string place_words(const std::vector<entry>& queue, const contender& own) {
    std::size_t ahead = 0;
    const entry* const mine = own_entry(queue, own);
    if (mine == nullptr) {
        const std::string holders = holders_words(queue, own);
        return holders.empty() ? "" : "it waits; " + holders;
    }
    std::vector<entry> before(queue.data(), mine);
    ahead = before.size();
    const std::string holders = holders_words(before, own);
    return std::to_string(ahead) + " ahead" + (holders.empty() ? "" : "; " + holders);
}

std::string place_of(const std::vector<entry>& queue,
                     const std::function<bool(const entry&)>& is_own) {
    const auto mine = std::find_if(queue.begin(), queue.end(), is_own);
    std::string text = mine == queue.end() ? "" : std::to_string(mine - queue.begin());
    const auto holder = std::find_if(queue.begin(), queue.end(),
                                     [&](const entry& e) { return e.holds && !is_own(e); });
    if (holder != queue.end()) text += " " + holder->handle;
    return text + ".";
}

std::string eviction_words(const std::vector<entry>& queue, const contender& own) {
    const entry* const mine = own_entry(queue, own);
    if (mine == nullptr || !mine->evicted) return "an operator asked for it back";
    const auto& by = *mine->evicted;
    std::string text = (by.who.empty() ? "an operator" : by.who) + " asked for it back";
    if (!by.why.empty()) text += " (" + detail::quoted(by.why, info_shown) + ")";
    return text;
}

std::string short_time_words(std::chrono::nanoseconds d) {
    if (d >= 10ms) return duration_words(std::chrono::duration_cast<std::chrono::milliseconds>(d));
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f ms", static_cast<double>(d.count()) / 1e6);
    return text.data();
}

}  // namespace trinco::program
