#include "wire/resp/resp_writer.hpp"

#include <hiredis/hiredis.h>

#include <memory>
#include <new>
#include <vector>

namespace trinco::detail {
namespace {

constexpr std::size_t most_bytes = 512UL * 1024 * 1024;

struct command_end {
    void operator()(char* bytes) const noexcept { ::redisFreeCommand(bytes); }
};

}  // namespace

std::string resp_command(std::span<const std::string> words) {
    if (words.empty()) return {};
    std::vector<const char*> starts;
    std::vector<std::size_t> sizes;
    starts.reserve(words.size());
    sizes.reserve(words.size());
    std::size_t all = 0;
    for (const auto& word : words) {
        starts.push_back(word.data());
        sizes.push_back(word.size());
        all += word.size() + sizeof "$0000000000\r\n\r\n";
        if (all > most_bytes) return {};
    }
    char* made = nullptr;
    const auto size = ::redisFormatCommandArgv(&made, static_cast<int>(words.size()), starts.data(),
                                               sizes.data());
    if (size < 0 || made == nullptr) throw std::bad_alloc();
    const std::unique_ptr<char, command_end> owner(made);
    return std::string(made, static_cast<std::size_t>(size));
}

}  // namespace trinco::detail
