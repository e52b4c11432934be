#include "apps/trinco/lock/holder_label.hpp"

#include <unistd.h>

#include <array>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/visible.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t longest_label = 256;  // as a session allows

}  // namespace

std::string holder_label(const std::string& command) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
    std::string label = std::string(host.data()) + ":" + std::to_string(::getpid());
    const std::string name = command.substr(command.rfind('/') + 1);
    if (detail::is_one_line(name)) label += " " + name.substr(0, 64);
    return label.substr(0, longest_label);
}

std::optional<problem> check_label(const std::string& label) {
    const bool is_shown = detail::is_one_line(label) && is_utf8(label);
    if (is_shown && label.size() <= longest_label) return std::nullopt;
    return problem{exit_usage, "--label is " + detail::quoted(label) +
                                   "; it is one line of at most " + std::to_string(longest_label) +
                                   " bytes of UTF-8"};
}

}  // namespace trinco::program
