// What a local store refuses to open, each with one sentence, and what another life of the machine
// changes.
#include "store/local/local_file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "store/local/local_schema.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/store.hpp"

namespace trinco::detail::test {
namespace {

class LocalFile : public ::testing::Test {
protected:
    LocalFile() : settings_(local_settings_for(folder_.file())) {}

    // The sentence with which it is refused; empty when it opens.
    std::string refusal(std::error_code expected) {
        try {
            const local_file opened(settings_, "local:x");
        } catch (const open_error& e) {
            EXPECT_EQ(e.code(), expected) << e.what();
            return e.what();
        }
        return {};
    }
    void make() { EXPECT_EQ(refusal({}), ""); }
    void change(const std::string& sql) {
        sqlite_database db(settings_.file.string());
        db.run(sql);
    }

    scratch_folder folder_;
    local_settings settings_;
};

bool says(const std::string& sentence, const char* what) {
    return sentence.find(what) != std::string::npos;
}

TEST_F(LocalFile, IsMadeAndOpenedAgain) {
    make();
    make();
    const local_file one(settings_, "local:x");
    local_file two(settings_, "local:x");
    EXPECT_EQ(one.epoch(), 1U);
    EXPECT_EQ(two.epoch(), 1U);
    EXPECT_FALSE(two.since_loss().has_value());
    EXPECT_EQ(two.db().number("PRAGMA user_version"), local_schema_version);
}

TEST_F(LocalFile, OneOfAnOlderLayoutIsBroughtUpToDateAndKeepsWhatItHas) {
    make();
    change(
        "ALTER TABLE machine DROP COLUMN sweep_at; CREATE INDEX sessions_ends ON sessions(ends); "
        "UPDATE machine SET granted = 7; PRAGMA user_version = 1");
    local_file opened(settings_, "local:x");
    EXPECT_EQ(opened.db().number("PRAGMA user_version"), local_schema_version);
    EXPECT_EQ(opened.db().number("SELECT granted FROM machine WHERE sweep_at = 0"), 7);
    EXPECT_EQ(opened.epoch(), 1U);
    make();
}

TEST_F(LocalFile, WhatIsNotADatabaseIsNamedAndLeftAlone) {
    const std::string text(4'096, 'x');
    std::ofstream(settings_.file) << text;
    EXPECT_TRUE(says(refusal(errc::unavailable), "is not a database"));
    std::ifstream in(settings_.file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
    EXPECT_FALSE(std::filesystem::exists(settings_.file.string() + "-gate"));
    std::ofstream(settings_.file.string() + "-gate");
    EXPECT_TRUE(says(refusal(errc::unavailable), "is not a database")) << "SQLite says so, too";
}

TEST_F(LocalFile, WhatIsNoFileIsNamedAndNothingIsPutBesideIt) {
    std::filesystem::create_directory(settings_.file);
    EXPECT_TRUE(says(refusal(errc::unavailable), "is no file"));
    EXPECT_FALSE(std::filesystem::exists(settings_.file.string() + "-gate"));
}

// The limit's signal would end the program.
TEST_F(LocalFile, ALimitOfFileSizesIsAnErrorAndLeavesNothingHalfMade) {
    ::rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    for (const ::rlim_t most : {0, 500, 1'024, 4'096, 10'000, 15'000}) {
        const ::rlimit tight{most, before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
        const std::string said = refusal(errc::unavailable);
        ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
        EXPECT_TRUE(says(said, "ulimit -f")) << most << ": " << said;
    }
    make();
}

TEST_F(LocalFile, ADatabaseOfAnotherProgramIsLeftAlone) {
    change("CREATE TABLE theirs(x)");
    EXPECT_TRUE(says(refusal(errc::unavailable), "of another program"));
    sqlite_database db(settings_.file.string());
    EXPECT_EQ(db.number("SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(LocalFile, ANewerLayoutIsRefused) {
    make();
    change("PRAGMA user_version = " + std::to_string(local_schema_version + 1));
    EXPECT_TRUE(says(refusal(errc::not_supported), "newer version"));
}

TEST_F(LocalFile, AMissingFolderIsNamed) {
    settings_.file = folder_.path() / "missing" / "local.db";
    EXPECT_TRUE(says(refusal(errc::unavailable), "does not exist"));
}

// Not a matter of rights.
TEST_F(LocalFile, NoDescriptorLeftIsNamed) {
    ::rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    // The first ones that are free: for none, the gate, and the database.
    const int next = ::dup(0);
    ASSERT_GE(next, 0);
    ::close(next);
    for (const int left : {0, 1}) {
        const ::rlimit tight{static_cast<::rlim_t>(next + left), before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
        const std::string said = refusal(errc::unavailable);
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
        EXPECT_TRUE(says(said, "Too many open files")) << left << ": " << said;
    }
    make();
}

TEST_F(LocalFile, ADamagedOneSaysTheWayOut) {
    make();
    {
        sqlite_database db(settings_.file.string());
        db.run("PRAGMA wal_checkpoint(TRUNCATE)");
    }
    std::filesystem::resize_file(settings_.file, 1'024);
    const std::string said = refusal(errc::unavailable);
    EXPECT_TRUE(says(said, "is damaged; end what uses it and move it away")) << said;
    for (const char* const part : {"", "-wal", "-shm", "-live", "-gate"}) {
        std::filesystem::remove(settings_.file.string() + part);
    }
    make();
}

TEST_F(LocalFile, ANetworkFileSystemIsRefused) {
    settings_.is_shared_by_machines = [](const auto&) { return true; };
    EXPECT_TRUE(says(refusal(errc::not_supported), "network file system"));
    EXPECT_FALSE(std::filesystem::exists(settings_.file));
    EXPECT_TRUE(is_shared_file_system(0x6969));
    EXPECT_TRUE(is_shared_file_system(static_cast<int>(0xff534d42)));
    EXPECT_FALSE(is_shared_file_system(0xef53));
    EXPECT_FALSE(is_shared_file_system(0x01021994));
}

TEST_F(LocalFile, AnotherMachineIsRefused) {
    make();
    settings_.boot_id = "another life";
    settings_.machine_id = "another machine";
    EXPECT_TRUE(says(refusal(errc::not_supported), "another machine"));
}

TEST_F(LocalFile, AContainerOfThisMachineIsNotAnotherMachine) {
    make();
    settings_.machine_id.clear();
    make();
}

TEST_F(LocalFile, AnotherTimeNamespaceIsRefused) {
    make();
    settings_.clock_offsets = "boottime 86400 0";
    EXPECT_TRUE(says(refusal(errc::not_supported), "time namespace"));
}

TEST_F(LocalFile, AnotherLifeRaisesTheEpochAndForgetsWhoLived) {
    make();
    change("INSERT INTO peers VALUES('old'); UPDATE machine SET granted = 7");
    settings_.boot_id = "another life";
    local_file file(settings_, "local:x");
    EXPECT_EQ(file.epoch(), 2U);
    EXPECT_EQ(file.db().number("SELECT count(*) FROM peers"), 0);
    EXPECT_EQ(file.db().number("SELECT granted FROM machine"), 0);
    ASSERT_TRUE(file.since_loss().has_value());
    EXPECT_LT(*file.since_loss(), std::chrono::minutes(1));
    const local_file again(settings_, "local:x");
    EXPECT_EQ(again.epoch(), 2U) << "once a life";
}

TEST_F(LocalFile, AnEpochIsBeyondAllTokensOfTheLifeBefore) {
    make();
    change("UPDATE machine SET granted = 9000000000");
    settings_.boot_id = "another life";
    const local_file file(settings_, "local:x");
    EXPECT_GT(file.epoch() << 32U, (1ULL << 32U) + 9'000'000'000U);
}

TEST_F(LocalFile, TheClockGoesOnWithTheBootClockWhateverTheWallClockSays) {
    std::chrono::microseconds boot{1'000'000};
    settings_.boot_time = [&] { return boot; };
    const local_file file(settings_, "local:x");
    const auto before = file.now();
    boot += std::chrono::seconds(5);
    EXPECT_EQ(file.now() - before, std::chrono::seconds(5));
    const local_file other(settings_, "local:x");
    EXPECT_EQ(other.now(), file.now());
}

TEST_F(LocalFile, AFileThatWasReplacedIsNoticed) {
    local_file file(settings_, "local:x");
    file.begin(false);
    file.roll_back();
    std::filesystem::rename(settings_.file, folder_.path() / "aside");
    EXPECT_THROW(file.begin(false), std::system_error);
    make();
    EXPECT_THROW(file.begin(false), std::system_error) << "another file under the same name";
}

TEST_F(LocalFile, ALongLogIsCopiedAndBegunAnew) {
    local_file file(settings_, "local:x");
    const std::string log = settings_.file.string() + "-wal";
    for (int i = 0; i < 60; ++i) {
        file.begin(false);
        file.db().run("INSERT INTO keys VALUES('" + std::to_string(i) +
                      "', zeroblob(1000000), 1, 0)");
        file.commit();
        file.db().checkpoint_if_long(false);
    }
    EXPECT_LT(std::filesystem::file_size(log), 30'000'000U);
    EXPECT_GT(std::filesystem::file_size(settings_.file), 30'000'000U);
}

TEST_F(LocalFile, ALinkLeadsToTheSameGate) {
    make();
    const auto link = folder_.path() / "link";
    std::filesystem::create_symlink(settings_.file, link);
    EXPECT_EQ(local_settings_for(link).file, local_settings_for(settings_.file).file);
}

TEST_F(LocalFile, WhoMayUseTheFileMayPassItsGate) {
    make();
    ASSERT_EQ(::chmod(settings_.file.c_str(), 0660), 0);
    make();
    struct ::stat gate {};
    ASSERT_EQ(::stat((settings_.file.string() + "-gate").c_str(), &gate), 0);
    EXPECT_EQ(gate.st_mode & 0777U, 0660U);
}

}  // namespace
}  // namespace trinco::detail::test
