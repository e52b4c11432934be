#include "apps/trinco/config/toml_file.hpp"

// No exceptions and no writing: only the parser is wanted.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <fcntl.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t largest_file = 1'048'576;
constexpr std::size_t longest_path = 1'000;

problem cannot_read(const std::filesystem::path& file, const std::string& why) {
    return {exit_usage, "the configuration " + detail::quoted(file.native(), longest_path) +
                            " cannot be read: " + why};
}

problem cannot_read(const std::filesystem::path& file, int error) {
    return cannot_read(file, std::generic_category().message(error));
}

std::string real_text(double value) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    return {digits.data(), end.ptr};
}

void describe(const toml::node& node, toml_value& to);

void describe_list(const toml::array& list, toml_value& to) {
    to.kind = toml_value::kind_t::list;
    for (const toml::node& one : list) {
        toml_value item;
        describe(one, item);
        const bool plain = item.kind <= toml_value::kind_t::boolean;
        if (!plain) to.kind = toml_value::kind_t::other;
        if (&one != list.get(0)) to.text += ',';
        to.text += item.text;
    }
}

void describe(const toml::node& node, toml_value& to) {
    using kind_t = toml_value::kind_t;
    if (const auto* const text = node.as_string()) {
        to.kind = kind_t::text;
        to.text = text->get();
    } else if (const auto* const whole = node.as_integer()) {
        to.kind = kind_t::number;
        to.text = std::to_string(whole->get());
    } else if (const auto* const real = node.as_floating_point()) {
        to.kind = kind_t::number;
        to.text = real_text(real->get());
    } else if (const auto* const yes = node.as_boolean()) {
        to.kind = kind_t::boolean;
        to.text = yes->get() ? "true" : "false";
    } else if (const auto* const list = node.as_array()) {
        describe_list(*list, to);
    } else {
        to.kind = node.is_table() ? kind_t::table : kind_t::other;
    }
}

void collect(const toml::table& from, const std::vector<std::string>& path,
             std::vector<toml_value>& to) {
    for (const auto& [key, node] : from) {
        toml_value found;
        found.path = path;
        found.path.emplace_back(key.str());
        // A dotted key has no line of its own in older versions of the library.
        found.line = std::max(node.source().begin.line, key.source().begin.line);
        describe(node, found);
        to.push_back(found);
        if (const auto* const inner = node.as_table()) collect(*inner, found.path, to);
    }
}

}  // namespace

std::variant<std::optional<std::string>, problem> read_configuration(
    const std::filesystem::path& file) {
    const int from = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
        return cannot_read(file, errno);
    }
    std::string text;
    std::array<char, 16'384> part{};
    int error = 0;
    while (text.size() <= largest_file) {
        const auto read = ::read(from, part.data(), part.size());
        if (read < 0 && errno == EINTR) continue;
        if (read < 0) error = errno;
        if (read <= 0) break;
        text.append(part.data(), static_cast<std::size_t>(read));
    }
    ::close(from);
    if (error != 0) return cannot_read(file, error);
    if (text.size() > largest_file) return cannot_read(file, "it is larger than 1 MiB");
    return text;
}

std::variant<std::vector<toml_value>, problem> parse_toml(std::string_view text,
                                                          const std::filesystem::path& file) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return problem{exit_usage, file.native() + ":" + std::to_string(error.source().begin.line) +
                                       ": this is not TOML: " + std::string(error.description())};
    }
    std::vector<toml_value> values;
    collect(parsed.table(), {}, values);
    std::stable_sort(values.begin(), values.end(),
                     [](const auto& a, const auto& b) { return a.line < b.line; });
    return values;
}

std::variant<std::optional<std::vector<toml_value>>, problem> read_toml(
    const std::filesystem::path& file) {
    auto text = read_configuration(file);
    if (auto* const wrong = std::get_if<problem>(&text)) return std::move(*wrong);
    const auto& content = std::get<std::optional<std::string>>(text);
    if (!content) return std::nullopt;
    auto parsed = parse_toml(*content, file);
    if (auto* const wrong = std::get_if<problem>(&parsed)) return std::move(*wrong);
    return std::move(std::get<std::vector<toml_value>>(parsed));
}

}  // namespace trinco::program
