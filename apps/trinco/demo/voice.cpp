#include "apps/trinco/demo/voice.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "apps/trinco/demo/live_view.hpp"
#include "apps/trinco/output/print.hpp"

namespace trinco::program::demo {
namespace {

using steady = std::chrono::steady_clock;

class plain_voice final : public voice {
public:
    explicit plain_voice(const voice_settings& with) : with_(with) {}

    void enter(std::string_view) override {}

    void tell(std::string_view, std::string_view sentence, const json_object&) override {
        print(elapsed_text(steady::now() - with_.since) + "  " + std::string(sentence) + "\n");
    }

    void show(std::vector<view_row>) override {}

    void print(std::string_view lines) override {
        const std::lock_guard hold(m_);
        if (const int error = write_all(with_.descriptor, lines)) with_.on_deaf(error);
    }

private:
    const voice_settings with_;
    std::mutex m_;
};

class json_voice final : public voice {
public:
    explicit json_voice(const voice_settings& with) : with_(with) {}

    void enter(std::string_view act) override {
        const std::lock_guard hold(m_);
        act_ = act;
    }

    void tell(std::string_view event, std::string_view sentence,
              const json_object& figures) override {
        const auto elapsed = steady::now() - with_.since;
        json_object line;
        line.add("schema", 1)
            .add("elapsed_ms",
                 std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count());
        {
            const std::lock_guard hold(m_);
            if (!act_.empty()) line.add("act", act_);
        }
        line.add("event", event).add("text", sentence);
        if (figures.text() != "{}") line.add_raw("figures", figures.text());
        print(line.text() + "\n");
    }

    void show(std::vector<view_row>) override {}

    void print(std::string_view lines) override {
        const std::lock_guard hold(m_);
        if (const int error = write_all(with_.descriptor, lines)) with_.on_deaf(error);
    }

private:
    const voice_settings with_;
    std::mutex m_;
    std::string act_;
};

const char* colour_of(tone t) {
    switch (t) {
        case tone::good: return "\x1b[32m";
        case tone::bad: return "\x1b[31m";
        case tone::busy: return "\x1b[33m";
        case tone::dim: return "\x1b[2m";
        case tone::plain: break;
    }
    return "";
}

// Appends as much of a text as there is room for.
class pen {
public:
    pen(std::size_t width, bool colours) : left_(width), colours_(colours) {}

    void put(std::string_view text, tone colour = tone::plain) {
        const std::string_view part = text.substr(0, left_);
        left_ -= part.size();
        const bool coloured = colours_ && colour != tone::plain && !part.empty();
        if (coloured) line_ += colour_of(colour);
        for (const char c : part) line_ += c >= ' ' && c <= '~' ? c : '?';
        if (coloured) line_ += "\x1b[0m";
    }

    [[nodiscard]] std::string line() && { return std::move(line_); }

private:
    std::string line_;
    std::size_t left_;
    bool colours_;
};

constexpr std::size_t label_width = 10;
constexpr std::size_t bar_width = 30;

void put_bar(pen& with, double filled, tone colour) {
    const double share = std::clamp(filled, 0.0, 1.0);
    const auto full = static_cast<std::size_t>(std::lround(share * bar_width));
    with.put("[");
    with.put(std::string(full, '#'), colour);
    with.put(std::string(bar_width - full, '-'), tone::dim);
    with.put("]  ");
}

}  // namespace

form form_for(int descriptor) {
    const char* terminal = std::getenv("TERM");
    const bool moves = terminal != nullptr && std::string_view(terminal) != "dumb" &&
                       *terminal != '\0' && ::isatty(descriptor) == 1;
    return moves ? form::live : form::plain;
}

bool wants_colours() {
    const char* none = std::getenv("NO_COLOR");
    return none == nullptr || *none == '\0';
}

std::string elapsed_text(steady::duration since) {
    char text[32];
    std::snprintf(text, sizeof text, "%6.1f s", std::chrono::duration<double>(since).count());
    return text;
}

std::string drawn(const view_row& row, std::size_t width, bool colours) {
    pen with(width, colours);
    std::string label = row.label.substr(0, label_width);
    label.append(label_width - label.size(), ' ');
    with.put(" " + label + " ");
    if (row.filled) put_bar(with, *row.filled, row.bar);
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
        if (i > 0) with.put("  ");
        with.put(row.cells[i].text, row.cells[i].colour);
    }
    return std::move(with).line();
}

std::unique_ptr<voice> make_voice(const voice_settings& with) {
    switch (with.as) {
        case form::live: return make_live_view(with);
        case form::json: return std::make_unique<json_voice>(with);
        case form::plain: break;
    }
    return std::make_unique<plain_voice>(with);
}

}  // namespace trinco::program::demo
