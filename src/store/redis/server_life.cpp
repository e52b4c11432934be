#include "store/redis/server_life.hpp"

#include <algorithm>
#include <utility>

namespace trinco::detail {
namespace {

constexpr std::string_view field = "run_id:";
constexpr std::size_t longest_id = 64;

[[nodiscard]] bool is_id(std::string_view text) {
    return !text.empty() && text.size() <= longest_id &&
           text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

}  // namespace

std::string run_id_in(std::string_view info) {
    while (!info.empty()) {
        const auto end = std::min(info.find('\n'), info.size());
        auto line = info.substr(0, end);
        info.remove_prefix(std::min(end + 1, info.size()));
        if (!line.starts_with(field)) continue;
        line.remove_prefix(field.size());
        if (line.ends_with('\r')) line.remove_suffix(1);
        return is_id(line) ? std::string(line) : std::string();
    }
    return {};
}

redis_step life_step(std::function<void(std::string run_id)> told) {
    return {{"INFO", "server"},
            [told = std::move(told)](const resp_reply& reply) -> std::optional<redis_refusal> {
                const bool is_text = reply.is(resp_reply::kind_t::string);
                told(is_text ? run_id_in(reply.text) : std::string());
                return {};
            }};
}

bool server_life::is_another(std::string run_id) {
    if (run_id.empty()) return false;
    const bool another = !run_id_.empty() && run_id_ != run_id;
    run_id_ = std::move(run_id);
    return another;
}

}  // namespace trinco::detail
