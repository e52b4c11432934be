#include "apps/trinco/lock/session_words.hpp"

namespace trinco::program {

std::string without_name(std::string_view sentence) {
    constexpr std::string_view name = "trinco: ";
    if (sentence.starts_with(name)) sentence.remove_prefix(name.size());
    return std::string(sentence);
}

}  // namespace trinco::program
