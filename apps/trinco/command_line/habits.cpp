#include "apps/trinco/command_line/habits.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "apps/trinco/command_line/shell_words.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

bool is_number(std::string_view word) {
    return !word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Not "--": one dash, or those of typography: U+2010 to U+2015, and U+2212.
bool is_dashes(std::string_view word) {
    if (word.empty() || word == "--") return false;
    while (!word.empty()) {
        const std::string_view three = word.substr(0, 3);
        const bool typographic = three.size() == 3 && three.starts_with("\xe2\x80") &&
                                 three[2] >= '\x90' && three[2] <= '\x95';
        if (word.front() == '-') {
            word.remove_prefix(1);
        } else if (typographic || three == "\xe2\x88\x92") {
            word.remove_prefix(3);
        } else {
            return false;
        }
    }
    return true;
}

// Takes the words one by one and writes down what was meant.
class translation {
public:
    translation(const std::string& name, std::span<const std::string> own, const arguments& takes)
        : line_{"trinco", name}, own_(own), takes_(takes) {}

    void run(bool is_lock) {
        while (next_ < own_.size() && !behind_) {
            const std::string& word = own_[next_++];
            if (is_lock && take_flock(word)) continue;
            if (has_name_ && is_dashes(word)) {
                const bool is_typed = word.find_first_not_of('-') == std::string::npos;
                note((is_typed ? detail::quoted(word) : "a dash of printers") +
                     " stands where -- does");
                separate();
            } else if (word.starts_with('-') && word.size() > 1) {
                line_.push_back(word);
                if (takes_.takes_value(word)) take_value("");
            } else if (!has_name_) {
                has_name_ = true;
                line_.push_back(word);
            } else {
                --next_;
                separate();
            }
        }
        line_.insert(line_.end(), own_.begin() + static_cast<std::ptrdiff_t>(next_), own_.end());
    }

    [[nodiscard]] std::optional<std::string> hint(std::span<const std::string> command) && {
        if (reason_.empty()) return std::nullopt;
        if (!behind_) line_.emplace_back("--");
        line_.insert(line_.end(), command.begin(), command.end());
        const bool nothing = line_.back() == "--";
        return reason_ + "; did you mean '" + shell_words(line_) + (nothing ? " COMMAND'?" : "'?");
    }

private:
    void note(const std::string& reason) {
        if (reason_.empty()) reason_ = reason;
    }
    void habit(const std::string& word, const std::string& what) {
        note(detail::quoted(word) + what);
    }
    void flock_habit(const std::string& word) { habit(word, " is an option of flock"); }
    void separate() {
        line_.emplace_back("--");
        behind_ = true;
    }
    void take_value(std::string_view unit) {
        if (next_ == own_.size()) return;
        const std::string& value = own_[next_++];
        line_.push_back(is_number(value) ? value + std::string(unit) : value);
    }

    // Whether the word is one of flock.
    bool take_flock(const std::string& word) {
        if (word == "-n" || word == "--nonblock" || word == "--nb") {
            if (word == "-n" && next_ < own_.size() && is_number(own_[next_])) return false;
            habit(word, word == "-n" ? " takes a number here" : " is an option of flock");
            line_.emplace_back("--no-wait");
        } else if (word == "-w" || word == "--timeout") {
            flock_habit(word);
            line_.emplace_back("--wait");
            take_value("s");
        } else if (word == "-s") {
            flock_habit(word);
            line_.emplace_back("--shared");
        } else if (word == "-x" || word == "-e" || word == "--exclusive") {
            flock_habit(word);  // and what is meant without it
        } else if (word == "-E" || word == "--conflict-exit-code") {
            flock_habit(word);
            line_.emplace_back("--code-not-acquired");
            take_value("");
        } else if (word == "-c" || word == "--command") {
            flock_habit(word);
            separate();
            line_.insert(line_.end(), {"sh", "-c"});
        } else {
            return false;
        }
        return true;
    }

    std::vector<std::string> line_;
    const std::span<const std::string> own_;
    const arguments& takes_;
    std::size_t next_ = 0;
    bool has_name_ = false;
    bool behind_ = false;  // of --
    std::string reason_;
};

}  // namespace

std::optional<std::string> habit_hint(const std::string& name, std::span<const std::string> own,
                                      std::span<const std::string> command, const arguments& takes,
                                      bool is_lock) {
    translation what(name, own, takes);
    what.run(is_lock);
    return std::move(what).hint(command);
}

}  // namespace trinco::program
