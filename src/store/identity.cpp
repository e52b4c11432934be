#include "store/identity.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <system_error>

namespace trinco::detail {
namespace {

// A container id is 64 hex digits in every runtime we know (docker, containerd, cri-o, podman).
constexpr std::size_t container_digits = 64;
constexpr std::size_t container_shown = 12;  // as `docker ps` shows it
constexpr std::size_t machine_digits = 32;
constexpr std::size_t host_max = 40;  // leaves room for ":pid:random" in 64

constexpr bool is_hex(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// At most 1 MiB: a mountinfo can be long, a stray file must not eat the memory. In pieces, because
// most are short, and memory that is not touched costs a program that runs for a moment nothing.
std::string read_head(const std::filesystem::path& path) {
    constexpr std::size_t piece = 4'096;
    constexpr std::size_t longest = std::size_t{1} << 20U;
    std::string text;
    std::ifstream in(path, std::ios::binary);
    while (in && text.size() < longest) {
        const auto before = text.size();
        text.resize(before + piece);
        in.read(text.data() + before, static_cast<std::streamsize>(piece));
        text.resize(before + static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    }
    return text;
}

// The first run of exactly that many hex digits.
std::optional<std::string> find_hex(std::string_view text, std::size_t digits) {
    for (std::size_t from = 0; from < text.size();) {
        if (!is_hex(text[from])) {
            ++from;
            continue;
        }
        const auto end =
            std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), is_hex);
        const auto length = static_cast<std::size_t>(end - text.begin()) - from;
        if (length == digits) return std::string(text.substr(from, digits));
        from += length;
    }
    return std::nullopt;
}

std::string machine_id(const identity_sources& from) {
    const auto id = read_head(from.machine_id);
    // "uninitialized" and an empty file are what images carry before their first boot.
    if (auto found = find_hex(id, machine_digits)) return *found;
    auto boot = read_head(from.boot_id);
    std::erase(boot, '-');
    if (auto found = find_hex(boot, machine_digits)) return *found;
    return "unknown-machine";
}

}  // namespace

std::optional<std::string> container_id(std::string_view cgroup, std::string_view mountinfo) {
    if (auto id = find_hex(cgroup, container_digits)) return id;
    // Only the mounts a runtime makes for each container; overlay layers are hex as well.
    while (!mountinfo.empty()) {
        const auto end = mountinfo.find('\n');
        const auto line = mountinfo.substr(0, end);
        mountinfo.remove_prefix(end == std::string_view::npos ? mountinfo.size() : end + 1);
        const bool runtimes = line.find(" /etc/hostname ") != std::string_view::npos ||
                              line.find(" /etc/resolv.conf ") != std::string_view::npos ||
                              line.find(" /etc/hosts ") != std::string_view::npos;
        if (!runtimes) continue;
        if (auto id = find_hex(line, container_digits)) return id;
    }
    return std::nullopt;
}

std::string find_voter(const identity_sources& from) {
    auto voter = machine_id(from);
    if (const auto id = container_id(read_head(from.cgroup), read_head(from.mountinfo))) {
        voter += '.';
        voter += id->substr(0, container_shown);
    }
    return voter;
}

std::string make_instance_name() {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"host"};
    std::string name = std::string(host.data()).substr(0, host_max);
    std::replace_if(
        name.begin(), name.end(),
        [](char c) {
            const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
            return !fits;
        },
        '-');
    std::uint32_t random = 0;
    if (::getentropy(&random, sizeof random) != 0) {
        throw std::system_error(errno, std::generic_category(),
                                "trinco: the system gives no random numbers");
    }
    std::array<char, 32> rest{};
    std::snprintf(rest.data(), rest.size(), ":%ld:%08x", static_cast<long>(::getpid()), random);
    return name + rest.data();
}

}  // namespace trinco::detail
