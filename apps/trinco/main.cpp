// The program. Reads the command line, says what it was asked, and answers a mistake with one line
// that says what was meant.

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/help.hpp"
#include "apps/trinco/nearest.hpp"
#include "apps/trinco/version.hpp"
#include "core/quoted.hpp"

namespace {

using namespace trinco::program;

constexpr std::array<std::string_view, 2> commands = {"help", "version"};

int complain(const std::string& what, int code) {
    std::fprintf(stderr, "trinco: %s\n", what.c_str());
    return code;
}

// A disk that is full shows only when the buffer is written.
int print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
        std::fflush(stdout) == 0) {
        return exit_ok;
    }
    const std::string why = std::generic_category().message(errno);
    return complain("standard output could not be written: " + why, exit_output);
}

int wrong(const std::string& what) {
    return complain(what, exit_usage);
}

// "there is no KIND "typed"; did you mean 'PREFIX word'?", or the hint when no word is close.
int no_such(const std::string& kind, std::string_view typed,
            std::span<const std::string_view> words, const std::string& prefix,
            const std::string& hint) {
    std::string message = "there is no " + kind + " " + trinco::detail::quoted(typed) + "; ";
    const std::string_view meant = nearest(typed, words);
    if (meant.empty()) {
        message += hint;
    } else {
        message += "did you mean '" + prefix + std::string(meant) + "'?";
    }
    return wrong(message);
}

int show_help(const std::string& topic) {
    for (const std::string_view command : commands) {
        if (topic == command) return show_help("");
    }
    const std::string text = help_on(topic);
    if (text.empty()) {
        return no_such("topic", topic, help_topics(), "trinco help ",
                       "'trinco help' lists what there is");
    }
    return print(text);
}

int show_version(const std::string& format) {
    if (format != "table" && format != "json") {
        return wrong("-o " + trinco::detail::quoted(format) +
                     " is not a format; it is table or json");
    }
    return print((format == "json" ? version_json() : version_line()) + "\n");
}

// A word that is not ours is answered before the parser sees it, whose message would not say what
// was meant.
bool is_unknown_command(std::string_view word) {
    return !word.starts_with('-') && word != commands[0] && word != commands[1];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return print(first_steps());
    if (is_unknown_command(argv[1])) {
        return no_such("command", argv[1], commands, "trinco ",
                       "this version has 'trinco help' and 'trinco version'");
    }
    CLI::App app("Trinco", "trinco");
    app.set_help_flag();
    app.require_subcommand(0, 1);
    app.allow_extras();
    bool wants_help = false;
    bool wants_version = false;
    app.add_flag("-h,--help", wants_help);
    app.add_flag("--version", wants_version);

    std::string topic;
    CLI::App* help = app.add_subcommand("help");
    help->set_help_flag();
    help->allow_extras();
    help->add_flag("-h,--help", wants_help);
    help->add_option("topic", topic);

    std::string format = "table";
    CLI::App* version = app.add_subcommand("version");
    version->set_help_flag();
    version->allow_extras();
    version->add_flag("-h,--help", wants_help);
    version->add_option("-o,--output", format);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ArgumentMismatch&) {
        return wrong("-o takes one format: table or json");  // no other option takes a value
    } catch (const CLI::ParseError& error) {
        return wrong("the command line was not understood: " +
                     trinco::detail::quoted(error.what(), 200));
    }
    if (const auto extras = app.remaining(true); !extras.empty()) {
        return wrong(trinco::detail::quoted(extras.front()) +
                     " was not expected; 'trinco help' lists what there is");
    }
    if (wants_help || help->parsed()) return show_help(topic);
    if (wants_version || version->parsed()) return show_version(format);
    return print(first_steps());
}
