// How the demonstration speaks: a live view on a terminal, plain lines, or JSON lines.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "apps/trinco/demo/stage.hpp"

namespace trinco::program::demo {

enum class form : std::uint8_t { live, plain, json };

// live on a terminal that moves its cursor, otherwise plain.
[[nodiscard]] form form_for(int descriptor);
// Not with NO_COLOR.
[[nodiscard]] bool wants_colours();

// A narrator with what only the frame says.
class voice : public narrator {
public:
    using narrator::tell;
    // The act that begins; its name is in every JSON line.
    virtual void enter(std::string_view act) = 0;
    // Lines as they are; each ends with '\n'. The live view goes away before.
    virtual void print(std::string_view lines) = 0;
};

struct voice_settings {
    form as = form::plain;
    bool colours = false;
    int descriptor = 1;
    std::chrono::steady_clock::time_point since{};  // times are told from here on
    // Called, on any thread and perhaps more than once, with errno when nothing can be written any
    // more: the reader has gone (EPIPE), the disk is full.
    std::function<void(int)> on_deaf = {};
};

[[nodiscard]] std::unique_ptr<voice> make_voice(const voice_settings& with);

// "12.3 s": of the same width for ten minutes.
[[nodiscard]] std::string elapsed_text(std::chrono::steady_clock::duration since);

// A row of the live view: at most `width` columns, colours not counted.
[[nodiscard]] std::string drawn(const view_row& row, std::size_t width, bool colours);

}  // namespace trinco::program::demo
