#include <algorithm>

#include "apps/trinco/command_line/arguments_impl.hpp"
#include "apps/trinco/output/wrapped.hpp"

namespace trinco::program {
namespace {

constexpr std::size_t widest_name = 30;

// "  NAME   text", with the text wrapped beside the names.
std::string entry(const std::string& name, std::size_t column, const std::string& text) {
    const bool fits = name.size() + 4 <= column;
    return "  " + name +
           (fits ? std::string(column - 2 - name.size(), ' ') : "\n" + std::string(column, ' ')) +
           wrapped(text, column) + "\n";
}

std::string left_of(const std::string& names, const std::string& placeholder) {
    std::string left = names;
    if (const auto comma = left.find(','); comma != std::string::npos) left.insert(comma + 1, " ");
    if (!placeholder.empty()) left += " " + placeholder;
    return left;
}

// "how long to wait (0s to 365d, default 0s)"
std::string right_of(std::string help, const std::string& range, const std::string& standard) {
    std::string notes = range;
    if (!standard.empty()) notes += (notes.empty() ? "default " : ", default ") + standard;
    if (!notes.empty()) help += " (" + notes + ")";
    return help;
}

}  // namespace

std::string arguments::help_text() const {
    std::vector<std::pair<std::string, std::string>> places;
    std::vector<std::pair<std::string, std::string>> options;
    for (const impl::place& p : impl_->places) {
        places.emplace_back(p.placeholder, right_of(p.help, "", p.standard));
    }
    for (const option& o : impl_->options) {
        options.emplace_back(left_of(o.names, o.placeholder),
                             right_of(o.help, o.range, o.standard));
    }
    options.emplace_back("-h, --help", "this text");
    std::size_t column = 0;
    for (const auto* const part : {&places, &options}) {
        for (const auto& [left, right] : *part) {
            column = std::max(column, std::min(left.size(), widest_name) + 4);
        }
    }
    std::string text;
    for (const auto& [left, right] : places) text += entry(left, column, right);
    if (!places.empty()) text += "\n";
    text += "options\n";
    for (const auto& [left, right] : options) text += entry(left, column, right);
    return text;
}

std::vector<std::string> arguments::option_names() const {
    std::vector<std::string> names;
    for (const option& o : impl_->options) names.push_back(o.shown);
    names.emplace_back("--help");
    return names;
}

bool arguments::takes_value(std::string_view name) const {
    const option* const found = impl_->find(name);
    return found != nullptr && !found->placeholder.empty();
}

std::vector<std::string> arguments::candidates_for(std::string_view name) const {
    const option* const found = impl_->find(name);
    if (found == nullptr) return {};
    return found->candidates ? found->candidates() : found->words;
}

std::vector<std::string> arguments::candidates_for(std::size_t positional) const {
    if (impl_->places.empty()) return {};
    const bool all = impl_->places.back().takes_all;
    const std::size_t index = all ? std::min(positional, impl_->places.size() - 1) : positional;
    if (index >= impl_->places.size() || !impl_->places[index].candidates) return {};
    return impl_->places[index].candidates();
}

}  // namespace trinco::program
