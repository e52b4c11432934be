#include "apps/trinco/demo/live_view.hpp"
#include "apps/trinco/output/print.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto between_drawings = 100ms;
constexpr std::size_t widest = 80;

struct extent {
    std::size_t width = widest;
    std::size_t height = 24;
};

// The last column stays free: writing there makes some terminals begin a new line.
extent extent_of(int descriptor) {
    const auto size = size_of_terminal(descriptor);
    if (!size || size->rows == 0) return {widest - 1, 24};
    return {std::min(size->columns, widest) - 1, size->rows};
}

class live_view final : public voice {
public:
    explicit live_view(const voice_settings& with)
        : with_(with), thread_([this](const std::stop_token& stop) { run(stop); }) {}

    ~live_view() override {
        thread_.request_stop();
        thread_.join();
        const std::lock_guard hold(m_);
        rows_.clear();
        draw({});
    }

    void enter(std::string_view) override {}

    void tell(std::string_view, std::string_view sentence, const json_object&) override {
        const std::lock_guard hold(m_);
        draw(elapsed_text(steady::now() - with_.since) + "  " + std::string(sentence) + "\n");
    }

    void show(std::vector<view_row> rows) override {
        const std::lock_guard hold(m_);
        rows_ = std::move(rows);
    }

    void print(std::string_view lines) override {
        const std::lock_guard hold(m_);
        rows_.clear();
        draw(lines);
    }

private:
    void run(const std::stop_token& stop) {
        std::unique_lock hold(m_);
        while (!stop.stop_requested()) {
            draw({});
            changed_.wait_for(hold, stop, between_drawings, [] { return false; });
        }
    }

    // Writes lines where the rows were, and the rows below them. m_ is held.
    void draw(std::string_view lines) {
        const extent now = extent_of(with_.descriptor);
        const std::vector<std::string> rows = drawing(now);
        if (lines.empty() && rows == drawn_) return;
        std::string text;
        if (!drawn_.empty()) text += "\r\x1b[" + std::to_string(drawn_.size()) + "A";
        for (std::size_t at = 0; at < lines.size();) {
            const std::size_t end = std::min(lines.find('\n', at), lines.size());
            text.append(lines.substr(at, end - at)).append("\x1b[K\n");
            at = end + 1;
        }
        for (const std::string& row : rows) text += row + "\x1b[K\n";
        text += "\x1b[J";  // what is left of a drawing that was taller
        drawn_ = rows;
        if (const int error = write_all(with_.descriptor, text)) with_.on_deaf(error);
    }

    [[nodiscard]] std::vector<std::string> drawing(const extent& now) const {
        std::vector<std::string> rows;
        if (rows_.empty()) return rows;
        const std::string time = elapsed_text(steady::now() - with_.since);
        const std::size_t room = now.width > time.size() + 2 ? now.width - time.size() - 2 : 0;
        std::string rule = " " + std::string(room, '-') + time;
        rule.resize(std::min(rule.size(), now.width));
        rows.push_back(with_.colours ? "\x1b[2m" + rule + "\x1b[0m" : rule);
        // A terminal that is too low scrolls, and what has scrolled away cannot be overwritten.
        const std::size_t most = now.height > 3 ? now.height - 3 : 0;
        for (const view_row& row : rows_) {
            if (rows.size() > most) break;
            rows.push_back(drawn(row, now.width, with_.colours));
        }
        return rows;
    }

    const voice_settings with_;
    std::mutex m_;
    std::condition_variable_any changed_;
    std::vector<view_row> rows_;
    std::vector<std::string> drawn_;  // what stands on the terminal
    std::jthread thread_;
};

}  // namespace

std::unique_ptr<voice> make_live_view(const voice_settings& with) {
    return std::make_unique<live_view>(with);
}

}  // namespace trinco::program::demo
