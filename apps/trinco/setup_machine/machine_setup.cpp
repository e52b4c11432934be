#include "apps/trinco/setup_machine/machine_setup.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/trinco/config/toml_file.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/setup_machine/groupadd.hpp"
#include "apps/trinco/setup_machine/machine_toml.hpp"

namespace trinco::program {
namespace {

namespace fs = std::filesystem;

constexpr const char* group_name = "trinco";
constexpr const char* folder_path = "var/lib/trinco";
constexpr const char* file_path = "/var/lib/trinco/local.db";
constexpr const char* settings_path = "etc/trinco.toml";
constexpr ::mode_t folder_mode = 02770;
constexpr ::mode_t file_mode = 0660;
constexpr ::mode_t settings_mode = 0644;

class descriptor {
public:
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    ~descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_;
};

problem failed(const std::string& what, int error) {
    const bool denied = error == EACCES || error == EPERM || error == EROFS;
    return {denied ? exit_denied : exit_unavailable,
            what + ": " + std::generic_category().message(error)};
}

class setting_up {
public:
    explicit setting_up(const machine_setup& how)
        : how_(how), folder_(how.root / folder_path), settings_(how.root / settings_path) {}

    std::optional<problem> run() {
        auto text = wanted_settings();
        if (auto* const bad = std::get_if<problem>(&text)) return std::move(*bad);
        if (auto bad = make_group()) return bad;
        if (auto bad = make_folder()) return bad;
        if (auto bad = make_files()) return bad;
        return write_settings(std::get<std::string>(text));
    }

private:
    // A step that is left out.
    std::optional<problem> would(const std::string& what) const {
        how_.tell("would " + what);
        return std::nullopt;
    }

    std::variant<std::string, problem> wanted_settings() {
        auto read = read_configuration(settings_);
        if (auto* const bad = std::get_if<problem>(&read)) return std::move(*bad);
        before_ = std::get<std::optional<std::string>>(read);
        return with_store(before_, std::string("local:") + file_path, settings_);
    }

    // As the system in `root` knows it.
    [[nodiscard]] std::optional<::gid_t> find_group() const {
        if (how_.root == "/") {
            const ::group* const found = ::getgrnam(group_name);
            return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
        }
        const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(
            std::fopen((how_.root / "etc/group").c_str(), "re"), &std::fclose);
        while (const ::group* const one = in ? ::fgetgrent(in.get()) : nullptr) {
            if (one->gr_name == std::string_view(group_name)) return one->gr_gid;
        }
        return std::nullopt;
    }

    std::optional<problem> make_group() {
        if (const auto found = find_group()) {
            group_ = *found;
            return std::nullopt;
        }
        const std::string what = std::string("the group ") + group_name;
        if (how_.dry_run) return would("make " + what);
        if (auto bad = add_group(group_name, how_.root)) return bad;
        const auto made = find_group();
        if (!made) {
            return problem{exit_unavailable, std::string("groupadd made the group ") + group_name +
                                                 ", but this system does not know it"};
        }
        group_ = *made;
        how_.tell("made " + what);
        return std::nullopt;
    }

    std::optional<problem> make_folder() {
        struct ::stat found {};
        const bool there = ::lstat(folder_.c_str(), &found) == 0;
        if (there && !S_ISDIR(found.st_mode)) {
            return problem{exit_usage, folder_.native() + " is no folder; move it away"};
        }
        if (there && is_right(found, folder_mode)) return std::nullopt;
        const std::string what =
            " the folder " + folder_.native() + " (root:" + group_name + ", mode 2770)";
        if (how_.dry_run) return would((there ? "change" : "make") + what);
        std::error_code error;
        fs::create_directories(folder_.parent_path(), error);
        if (error) return failed("making " + folder_.native(), error.value());
        if (!there && ::mkdir(folder_.c_str(), 0700) != 0) {
            return failed("making " + folder_.native(), errno);
        }
        const descriptor at(
            ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (at.get() < 0 || !make_right(at.get(), folder_mode)) {
            return failed("changing " + folder_.native(), errno);
        }
        how_.tell((there ? "changed" : "made") + what);
        return std::nullopt;
    }

    std::optional<problem> make_files() {
        const descriptor in(
            ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (in.get() < 0 && !how_.dry_run) return failed("opening " + folder_.native(), errno);
        if (in.get() < 0 && errno == EACCES) {
            return would("see to the files in " + folder_.native() +
                         ", which this user may not look into");
        }
        for (const auto* name :
             {"local.db", "local.db-wal", "local.db-shm", "local.db-gate", "local.db-live"}) {
            if (auto bad = make_file(in.get(), name)) return bad;
        }
        return std::nullopt;
    }

    std::optional<problem> make_file(int in, const std::string& name) const {
        const std::string shown = (folder_ / name).native();
        struct ::stat found {};
        const bool there = in >= 0 && ::fstatat(in, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
        const bool is_database = name == "local.db";
        // What is missing beside the database is made by those who use it.
        if (!there && !is_database) return std::nullopt;
        if (there && is_right(found, file_mode)) return std::nullopt;
        const std::string what = " the file " + shown + " (root:" + group_name + ", mode 0660)";
        if (how_.dry_run) return would((there ? "change" : "make") + what);
        const int flags = there ? O_RDWR : O_RDWR | O_CREAT | O_EXCL;
        const descriptor at(
            ::openat(in, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
        if (at.get() < 0) return failed("opening " + shown, errno);
        if (::fstat(at.get(), &found) != 0) return failed("looking at " + shown, errno);
        if (!S_ISREG(found.st_mode) || found.st_nlink != 1) {
            return problem{exit_usage, shown + " is no file of its own; move it away"};
        }
        if (!make_right(at.get(), file_mode)) return failed("changing " + shown, errno);
        how_.tell((there ? "changed" : "made") + what);
        return std::nullopt;
    }

    [[nodiscard]] bool is_right(const struct ::stat& found, ::mode_t mode) const {
        return found.st_uid == 0 && found.st_gid == group_ && (found.st_mode & 07777U) == mode;
    }
    [[nodiscard]] bool make_right(int fd, ::mode_t mode) const {
        return ::fchown(fd, 0, *group_) == 0 && ::fchmod(fd, mode) == 0;
    }

    std::optional<problem> write_settings(const std::string& text) const {
        if (before_ == text) return std::nullopt;
        const std::string what = std::string(" breakers.store and locks.store = \"local:") +
                                 file_path + "\" into " + settings_.native();
        if (how_.dry_run) return would("write" + what);
        struct ::stat found {};
        const bool there = ::stat(settings_.c_str(), &found) == 0;
        // Beside it and then in its place: nobody reads half of it.
        const std::string fresh = settings_.native() + ".new";
        ::unlink(fresh.c_str());
        const descriptor to(
            ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, settings_mode));
        if (to.get() < 0) return failed("writing " + fresh, errno);
        int error = write_all(to.get(), text);
        const bool owned = !there || ::fchown(to.get(), found.st_uid, found.st_gid) == 0;
        const ::mode_t mode = there ? found.st_mode & 07777U : settings_mode;
        if (error == 0 && (!owned || ::fchmod(to.get(), mode) != 0 || ::fsync(to.get()) != 0)) {
            error = errno;
        }
        if (error == 0 && ::rename(fresh.c_str(), settings_.c_str()) != 0) error = errno;
        if (error == 0) {
            how_.tell("wrote" + what);
            return std::nullopt;
        }
        ::unlink(fresh.c_str());
        return failed("writing " + settings_.native(), error);
    }

    const machine_setup& how_;
    const fs::path folder_;
    const fs::path settings_;
    std::optional<std::string> before_;  // the settings' text
    std::optional<::gid_t> group_;       // unknown in a dry run before it is made
};

}  // namespace

std::optional<problem> set_up_machine(const machine_setup& how) {
    if (!how.dry_run && ::geteuid() != 0) {
        return problem{
            exit_denied,
            "setting the machine up makes a group, /var/lib/trinco and /etc/trinco.toml, "
            "and so needs root: 'sudo trinco setup --machine'"};
    }
    return setting_up(how).run();
}

}  // namespace trinco::program
