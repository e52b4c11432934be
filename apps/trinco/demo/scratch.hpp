// The folder in which a demonstration plays, gone when it is over.
//
// It lies in $TMPDIR, or /tmp, is named trinco-demo-XXXXXX and is for its user only. A file in it
// is locked (flock) as long as the demonstration lives. One that was killed leaves its folder; the
// next one of the same user finds the file unlocked and removes the folder.
#pragma once

#include <filesystem>
#include <variant>

#include "apps/trinco/problem.hpp"

namespace trinco::program::demo {

class scratch {
public:
    // Makes one, and removes what killed demonstrations have left in the same place. `place`:
    // empty means $TMPDIR or /tmp. The problem names the place and what to do.
    [[nodiscard]] static std::variant<scratch, problem> make(std::filesystem::path place = {});
    scratch(scratch&& other) noexcept;
    scratch& operator=(scratch&&) = delete;
    ~scratch();

    [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
    // Now. Whether it is gone: false when something still writes into it; may be repeated.
    bool remove() noexcept;

private:
    scratch(std::filesystem::path folder, int lock) noexcept;
    std::filesystem::path folder_;
    int lock_ = -1;
};

}  // namespace trinco::program::demo
