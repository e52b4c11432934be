#include "store/identity.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/names.hpp"

namespace trinco::detail {
namespace {

constexpr auto machine = "0123456789abcdef0123456789abcdef";
constexpr auto container = "5f1a6c0e9b7d4c3a2f1e0d9c8b7a69584736251403f2e1d0c9b8a79685746352";

// A folder of its own, with the files that a machine would have.
class identity : public testing::Test {
protected:
    identity() {
        const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = std::filesystem::temp_directory_path() /
                  ("trinco-identity-" + std::to_string(::getpid()) + "-" + info->name());
        std::filesystem::create_directories(folder_);
        from_ = {folder_ / "machine-id", folder_ / "boot_id", folder_ / "cgroup",
                 folder_ / "mountinfo"};
    }
    ~identity() override { std::filesystem::remove_all(folder_); }

    static void write(const std::filesystem::path& file, const std::string& text) {
        std::ofstream(file) << text;
    }

    std::filesystem::path folder_;
    identity_sources from_;
};

TEST_F(identity, a_machine_outside_containers_is_its_machine_id) {
    write(from_.machine_id, std::string(machine) + "\n");
    write(from_.cgroup, "0::/user.slice/user-1000.slice/session-3.scope\n");
    write(from_.mountinfo, "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
    EXPECT_EQ(find_voter(from_), machine);
}

TEST_F(identity, a_container_adds_its_id_from_the_cgroup) {
    write(from_.machine_id, std::string(machine) + "\n");
    write(from_.cgroup, std::string("0::/system.slice/docker-") + container + ".scope\n");
    EXPECT_EQ(find_voter(from_), std::string(machine) + ".5f1a6c0e9b7d");
    EXPECT_FALSE(check_voter(find_voter(from_)).has_value());
}

TEST_F(identity, a_hidden_cgroup_leaves_the_mounts_of_the_runtime) {
    write(from_.machine_id, std::string(machine) + "\n");
    write(from_.cgroup, "0::/\n");
    const std::string layer(64, 'd');
    write(from_.mountinfo, "1 0 0:1 / / rw - overlay overlay rw,upperdir=/x/" + layer +
                               "/diff\n2 1 8:1 /var/lib/docker/containers/" + container +
                               "/hostname /etc/hostname rw - ext4 /dev/sda1 rw\n");
    EXPECT_EQ(find_voter(from_), std::string(machine) + ".5f1a6c0e9b7d");
}

TEST_F(identity, layers_of_images_and_longer_numbers_are_no_container) {
    const std::string layer(64, 'd');
    EXPECT_EQ(
        container_id("0::/\n", "1 0 0:1 / / rw - overlay overlay rw,upperdir=/" + layer + "\n"),
        std::nullopt);
    EXPECT_EQ(container_id("0::/x-" + std::string(65, 'a') + "\n", ""), std::nullopt);
    EXPECT_EQ(container_id("0::/x-" + std::string(63, 'a') + "\n", ""), std::nullopt);
    EXPECT_EQ(container_id("", ""), std::nullopt);
}

TEST_F(identity, without_a_machine_id_the_boot_speaks) {
    write(from_.machine_id, "uninitialized\n");
    write(from_.boot_id, "01234567-89ab-cdef-0123-456789abcdef\n");
    EXPECT_EQ(find_voter(from_), machine);
    std::filesystem::remove(from_.machine_id);
    EXPECT_EQ(find_voter(from_), machine);
    std::filesystem::remove(from_.boot_id);
    EXPECT_EQ(find_voter(from_), "unknown-machine");
}

TEST_F(identity, this_machine_gives_a_valid_name) {
    EXPECT_FALSE(check_voter(find_voter()).has_value()) << find_voter();
}

TEST_F(identity, instances_are_valid_names_with_the_pid_and_all_different) {
    const auto a = make_instance_name();
    const auto b = make_instance_name();
    EXPECT_NE(a, b);
    EXPECT_FALSE(check_instance(a).has_value()) << a;
    EXPECT_NE(a.find(":" + std::to_string(::getpid()) + ":"), std::string::npos) << a;
}

}  // namespace
}  // namespace trinco::detail
