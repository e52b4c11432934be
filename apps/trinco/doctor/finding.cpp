#include "apps/trinco/doctor/finding.hpp"

#include <algorithm>
#include <utility>

#include "apps/trinco/output/visible.hpp"
#include "apps/trinco/output/wrapped.hpp"

namespace trinco::program::doctor {
namespace {

constexpr std::size_t level_width = 6;
constexpr std::size_t check_width = 13;
constexpr std::size_t indent = 2 + level_width + check_width;

std::string padded(std::string_view word, std::size_t width) {
    std::string text(word);
    text.append(width > text.size() ? width - text.size() : 1, ' ');
    return text;
}

std::string text_of(const finding& one) {
    std::string text = "  " + padded(word_of(one.how), level_width) +
                       padded(one.check, check_width) + wrapped(visible(one.sentence), indent) +
                       "\n";
    if (one.advice.empty()) return text;
    text += std::string(indent, ' ') + "-> " + wrapped(visible(one.advice), indent + 3) + "\n";
    // Never broken: a line that is pasted in two parts is two commands.
    for (const std::string& command : one.commands) {
        text += std::string(indent + 3, ' ') + visible(command) + "\n";
    }
    return text;
}

json_object json_of(const finding& one) {
    json_object o;
    o.add("check", one.check).add("level", word_of(one.how)).add("sentence", one.sentence);
    one.advice.empty() ? o.add_null("advice") : o.add("advice", one.advice);
    json_array commands;
    for (const std::string& command : one.commands) commands.add(command);
    o.add_raw("commands", commands.text()).add_raw("figures", one.figures.text());
    return o;
}

}  // namespace

std::string_view word_of(level l) noexcept {
    switch (l) {
        case level::good: return "ok";
        case level::warn: return "warn";
        case level::bad: break;
    }
    return "bad";
}

void examination::good(std::string_view check, std::string sentence, json_object figures) {
    add({level::good, std::string(check), std::move(sentence), {}, std::move(figures)});
}

void examination::warn(std::string_view check, std::string sentence, std::string advice) {
    add({level::warn, std::string(check), std::move(sentence), std::move(advice), {}});
}

void examination::bad(std::string_view check, std::string sentence, std::string advice) {
    add({level::bad, std::string(check), std::move(sentence), std::move(advice), {}});
}

level examination::worst() const noexcept {
    level l = level::good;
    for (const finding& one : all) l = std::max(l, one.how);
    return l;
}

level worst_of(std::span<const examination> stores) noexcept {
    level l = level::good;
    for (const examination& one : stores) l = std::max(l, one.worst());
    return l;
}

std::string text_of(std::span<const examination> stores) {
    std::string text;
    for (const examination& one : stores) {
        if (!text.empty()) text += "\n";
        text += one.use + ": " + visible(one.store) +
                (one.name_space.empty() ? "" : ", namespace " + one.name_space) + "\n";
        for (const finding& each : one.all) text += text_of(each);
    }
    return text;
}

std::string json_of(std::span<const examination> stores) {
    json_array all;
    for (const examination& one : stores) {
        json_array checks;
        for (const finding& each : one.all) checks.add_raw(json_of(each).text());
        json_object o;
        o.add("use", one.use).add("store", one.store);
        one.name_space.empty() ? o.add_null("namespace") : o.add("namespace", one.name_space);
        o.add("level", word_of(one.worst())).add_raw("checks", checks.text());
        all.add_raw(o.text());
    }
    return json_object()
               .add("schema", 1)
               .add("level", word_of(worst_of(stores)))
               .add_raw("stores", all.text())
               .text() +
           "\n";
}

std::string names_of(std::span<const examination> stores) {
    std::string text;
    for (const examination& one : stores) {
        for (const finding& each : one.all) {
            if (each.how == level::good) continue;
            text += each.check + " " + std::string(word_of(each.how)) + "\n";
        }
    }
    return text;
}

}  // namespace trinco::program::doctor
