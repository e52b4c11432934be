// What killed processes leave beside the file is removed, and nothing else.
#include "store/local/local_mail.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "store/local/local_worker.hpp"
#include "tests/store/local/scratch_folder.hpp"

namespace trinco::detail::test {
namespace {

namespace fs = std::filesystem;
const local_rights mine_alone{0600, ::geteuid(), ::getegid()};
using namespace std::chrono_literals;

class LocalMail : public ::testing::Test {
protected:
    // As a killed process leaves it.
    void leave_socket(const std::string& name) const {
        const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ::sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string path = (folder_.path() / name).string();
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        const auto* const generic = reinterpret_cast<const ::sockaddr*>(&address);
        EXPECT_EQ(::bind(fd, generic, sizeof address), 0) << path;
        ::close(fd);
    }
    void make_old(const std::string& name) const {
        fs::last_write_time(folder_.path() / name, fs::file_time_type::clock::now() - 2min);
    }
    [[nodiscard]] bool is_there(const std::string& name) const {
        return fs::exists(fs::symlink_status(folder_.path() / name));
    }

    scratch_folder folder_;
};

TEST_F(LocalMail, OldSocketsOfTheDeadAreRemovedAndNothingElse) {
    for (const auto* name : {"db-sdead", "db-syoung", "other-sdead"}) leave_socket(name);
    const local_mail living(folder_.path().string(), "db-sliving", mine_alone);
    std::ofstream(folder_.path() / "db-sfile") << "x";
    for (const auto* name : {"db-sdead", "other-sdead", "db-sliving", "db-sfile"}) make_old(name);
    local_mail mine(folder_.path().string(), "db-smine", mine_alone);
    mine.remove_dead("db-s");
    EXPECT_FALSE(is_there("db-sdead"));
    for (const auto* name : {"db-syoung", "other-sdead", "db-sliving", "db-sfile", "db-smine"}) {
        EXPECT_TRUE(is_there(name)) << name;
    }
}

TEST_F(LocalMail, WhoOpensAStoreDoesItNowAndThen) {
    leave_socket("local.db-sdead");
    make_old("local.db-sdead");
    // One in sixteen: that 500 of them leave it has a chance of one in 10^14.
    for (int i = 0; i < 500 && is_there("local.db-sdead"); ++i) {
        const local_worker one(local_settings_for(folder_.file()), "local:x");
    }
    EXPECT_FALSE(is_there("local.db-sdead"));
}

}  // namespace
}  // namespace trinco::detail::test
