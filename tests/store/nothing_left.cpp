// Linked in, it has every test of the executable fail that leaves a descriptor or a thread behind.
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>

namespace trinco::detail::test {
namespace {

std::size_t entries_of(const std::string& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                                  std::filesystem::directory_iterator()));
}

struct possessions {
    std::size_t descriptors = entries_of("/proc/self/fd");
    std::size_t threads = entries_of("/proc/self/task");
    [[nodiscard]] bool within(const possessions& others) const {
        return descriptors <= others.descriptors && threads <= others.threads;
    }
};

class nothing_left final : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo&) override { before_ = possessions(); }

    // A thread that was told to end, and is joined by nobody, may take a moment.
    void OnTestEnd(const testing::TestInfo&) override {
        using clock = std::chrono::steady_clock;
        const auto end = clock::now() + std::chrono::seconds(5);
        possessions now;
        while (!now.within(before_) && clock::now() < end) {
            ::poll(nullptr, 0, 5);
            now = possessions();
        }
        EXPECT_LE(now.descriptors, before_.descriptors) << "descriptors are left";
        EXPECT_LE(now.threads, before_.threads) << "threads are left";
    }

    possessions before_;
};

// gtest owns it.
[[maybe_unused]] const bool is_listening = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new nothing_left);
    return true;
}();

}  // namespace
}  // namespace trinco::detail::test
