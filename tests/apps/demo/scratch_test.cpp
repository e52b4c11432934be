#include "apps/trinco/demo/scratch.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace trinco::program::demo {
namespace {

namespace fs = std::filesystem;

class Scratch : public testing::Test {
protected:
    Scratch() {
        std::string name = testing::TempDir() + "scratch-XXXXXX";
        place_ = ::mkdtemp(name.data());
    }
    ~Scratch() override { fs::remove_all(place_); }

    [[nodiscard]] scratch make() const {
        auto made = scratch::make(place_);
        if (const auto* why = std::get_if<problem>(&made)) ADD_FAILURE() << why->sentence;
        return std::move(std::get<scratch>(made));
    }

    // A folder as a demonstration that was killed leaves it.
    [[nodiscard]] fs::path leave(const std::string& name) const {
        const fs::path folder = place_ / name;
        fs::create_directories(folder / "tickets");
        write(folder / "trinco-demo.lock");
        write(folder / "tickets" / "stock");
        return folder;
    }

    static void write(const fs::path& file) { std::ofstream(file) << "x"; }

    fs::path place_;
};

TEST_F(Scratch, IsAFolderOfItsUserAloneAndGoesAway) {
    fs::path folder;
    {
        const scratch mine = make();
        folder = mine.folder();
        EXPECT_EQ(place_, folder.parent_path());
        struct stat about {};
        ASSERT_EQ(0, ::stat(folder.c_str(), &about));
        EXPECT_EQ(0700u, about.st_mode & 07777);
        fs::create_directories(folder / "a" / "b");
        write(folder / "a" / "b" / "c");
    }
    EXPECT_FALSE(fs::exists(folder));
    EXPECT_TRUE(fs::is_empty(place_));
}

TEST_F(Scratch, RemovesWhatAKilledOneHasLeft) {
    const fs::path left = leave("trinco-demo-abcdef");
    const scratch mine = make();
    EXPECT_FALSE(fs::exists(left));
}

TEST_F(Scratch, LeavesALivingOneAlone) {
    const scratch first = make();
    write(first.folder() / "stock");
    const scratch second = make();
    EXPECT_NE(first.folder(), second.folder());
    EXPECT_TRUE(fs::exists(first.folder() / "stock"));
}

TEST_F(Scratch, LeavesWhatIsNotOneAlone) {
    const fs::path other = place_ / "trinco-demo-others";  // as long a name, without the file
    fs::create_directory(other);
    write(other / "letter");
    const fs::path longer = leave("trinco-demo-abcdefg");
    const fs::path elsewhere = leave("elsewhere");
    fs::create_directory_symlink(elsewhere, place_ / "trinco-demo-linked");
    const fs::path linked_file = place_ / "trinco-demo-marked";
    fs::create_directory(linked_file);
    fs::create_symlink(elsewhere / "trinco-demo.lock", linked_file / "trinco-demo.lock");
    const scratch mine = make();
    EXPECT_TRUE(fs::exists(other / "letter"));
    EXPECT_TRUE(fs::exists(longer / "tickets" / "stock"));
    EXPECT_TRUE(fs::exists(elsewhere / "tickets" / "stock"));
    EXPECT_TRUE(fs::is_symlink(linked_file / "trinco-demo.lock"));
}

TEST_F(Scratch, DoesNotFollowLinksWhenItRemoves) {
    write(place_ / "precious");
    const fs::path left = leave("trinco-demo-abcdef");
    fs::create_directory_symlink(place_, left / "up");
    fs::create_symlink(place_ / "precious", left / "file");
    const scratch mine = make();
    EXPECT_FALSE(fs::exists(left));
    EXPECT_TRUE(fs::exists(place_ / "precious"));
}

TEST_F(Scratch, NamesThePlaceWhereItCannotBeMade) {
    const auto made = scratch::make(place_ / "none");
    const auto* why = std::get_if<problem>(&made);
    ASSERT_NE(nullptr, why);
    EXPECT_NE(std::string::npos, why->sentence.find((place_ / "none").string())) << why->sentence;
    EXPECT_NE(std::string::npos, why->sentence.find("TMPDIR")) << why->sentence;
}

}  // namespace
}  // namespace trinco::program::demo
