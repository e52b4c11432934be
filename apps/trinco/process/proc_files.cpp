#include "apps/trinco/process/proc_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string_view>

namespace trinco::program {

std::optional<std::string> proc_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::string text;
    std::array<char, 4096> buffer{};
    ::ssize_t size = 0;
    while ((size = ::read(file, buffer.data(), buffer.size())) > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(size));
    }
    ::close(file);
    return text;
}

std::vector<::pid_t> proc_numbers(const std::string& path) {
    std::vector<::pid_t> numbers;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (!folder) return numbers;
    while (const dirent* const entry = ::readdir(folder.get())) {
        const std::string_view name = entry->d_name;
        ::pid_t number = 0;
        const auto [end, error] = std::from_chars(name.begin(), name.end(), number);
        if (error == std::errc() && end == name.end()) numbers.push_back(number);
    }
    return numbers;
}

}  // namespace trinco::program
