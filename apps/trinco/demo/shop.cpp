#include "apps/trinco/demo/shop.hpp"
#include "apps/trinco/output/print.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace trinco::program::demo {
namespace {

constexpr std::size_t digits = 6;

class file {
public:
    file(const std::filesystem::path& path, int how)
        : fd_(::open(path.c_str(), how | O_CLOEXEC, 0600)) {}
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    ~file() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

// One write of always as many bytes, so that nobody ever reads half of it.
bool write_stock(const std::filesystem::path& path, int left) {
    const file stock(path, O_WRONLY | O_CREAT);
    std::array<char, digits + 2> text{};
    const int length = std::snprintf(text.data(), text.size(), "%06d\n", left);
    return length == static_cast<int>(digits + 1) &&
           ::pwrite(stock.get(), text.data(), digits + 1, 0) == length;
}

bool append(const std::filesystem::path& path, const std::string& line) {
    const file account(path, O_WRONLY | O_CREAT | O_APPEND);
    return account.get() >= 0 && write_all(account.get(), line) == 0;
}

}  // namespace

std::error_code shop::open(int tickets) const {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (!error && !write_stock(folder_ / "stock", tickets)) {
        error = {errno, std::generic_category()};
    }
    return error;
}

int shop::left() const {
    const file stock(folder_ / "stock", O_RDONLY);
    std::array<char, digits> text{};
    if (::pread(stock.get(), text.data(), digits, 0) != static_cast<::ssize_t>(digits)) return -1;
    int left = -1;
    std::from_chars(text.data(), text.data() + digits, left);
    return left;
}

shop::answer shop::pass(int fence, std::uint64_t token) const {
    if (::flock(fence, LOCK_EX) != 0) return answer::failed;
    std::uint64_t highest = 0;
    if (::pread(fence, &highest, sizeof highest, 0) < 0) return answer::failed;
    if (token < highest) return answer::refused;
    const bool written = ::pwrite(fence, &token, sizeof token, 0) == sizeof token;
    return written ? answer::done : answer::failed;
}

shop::answer shop::read(int& left_now, std::optional<std::uint64_t> token) const {
    // Closed, and so unlocked, when this returns.
    const file fence(folder_ / "fence", O_RDWR | O_CREAT);
    if (token) {
        if (const answer fenced = pass(fence.get(), *token); fenced != answer::done) return fenced;
    }
    left_now = left();
    return left_now < 0 ? answer::failed : answer::done;
}

shop::answer shop::sell(std::string_view seller, int left_before,
                        std::optional<std::uint64_t> token) const {
    const file fence(folder_ / "fence", O_RDWR | O_CREAT);
    if (token) {
        if (const answer fenced = pass(fence.get(), *token); fenced != answer::done) return fenced;
    }
    const std::string sale = std::to_string(left_before) + " " + std::string(seller) + "\n";
    if (!write_stock(folder_ / "stock", left_before - 1)) return answer::failed;
    if (!append(folder_ / "receipts", sale)) return answer::failed;
    if (token && !append(folder_ / "ledger", std::to_string(*token) + " " + sale)) {
        return answer::failed;
    }
    return answer::done;
}

std::vector<shop::receipt> shop::receipts() const {
    std::vector<receipt> all;
    std::ifstream account(folder_ / "receipts");
    for (receipt next; account >> next.ticket >> next.seller;) all.push_back(next);
    return all;
}

std::vector<std::uint64_t> shop::tokens() const {
    std::vector<std::uint64_t> all;
    std::ifstream account(folder_ / "ledger");
    for (std::string line; std::getline(account, line);) {
        std::uint64_t token = 0;
        std::istringstream(line) >> token;
        all.push_back(token);
    }
    return all;
}

bool shop::take_part(std::string_view part) const {
    return file(folder_ / ("part-" + std::string(part)), O_WRONLY | O_CREAT | O_EXCL).get() >= 0;
}

}  // namespace trinco::program::demo
