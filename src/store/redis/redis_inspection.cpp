#include "store/redis/redis_inspection.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t round_most = 64;  // scripts in a pipeline

}  // namespace

op redis_inspection::start(script_runner& scripts, request what, completion<page> done) {
    const auto all = std::make_shared<redis_inspection>(scripts, std::move(what), std::move(done));
    all->next_names();
    return op([all]() noexcept {
        all->done_ = nullptr;
        all->ops_.clear();
    });
}

redis_inspection::redis_inspection(script_runner& scripts, request what, completion<page> done)
    : scripts_(scripts), what_(std::move(what)), done_(std::move(done)) {}

void redis_inspection::next_names() {
    const auto index = breaker_index_key(what_.name_space);
    const bool goes_on = what_.from >= what_.prefix && !what_.from.empty();
    // Names are of ASCII, so no name with the prefix is behind this one.
    const std::string last = what_.prefix.empty() ? "+" : "(" + what_.prefix + "\xff";
    const auto most = std::min(what_.rows - page_.rows.size(), round_most);
    ops_.clear();
    ops_.push_back(scripts_.run(
        index,
        {"ZRANGEBYLEX", index, goes_on ? "(" + what_.from : "[" + what_.prefix, last, "LIMIT", "0",
         std::to_string(most + 1)},
        what_.by,
        [self = shared_from_this(), most](std::error_code error, const resp_reply& reply) {
            if (error) return self->finish(error);
            self->more_ = reply.elements.size() > most;
            self->came_names(reply);
        }));
}

void redis_inspection::came_names(const resp_reply& names) {
    names_.clear();
    for (const auto& one : names.elements) names_.push_back(one.text);
    if (more_) names_.pop_back();
    if (names_.empty()) return finish({});
    reports_.assign(names_.size(), {});
    open_ = names_.size();
    ops_.clear();
    for (std::size_t at = 0; at < names_.size(); ++at) {
        ops_.push_back(scripts_.run(
            inspect_call(what_.name_space, names_[at]), what_.by,
            [self = shared_from_this(), at](std::error_code error, const resp_reply& reply) {
                self->came_report(at, error, reply);
            }));
    }
}

void redis_inspection::came_report(std::size_t at, std::error_code error, const resp_reply& reply) {
    if (is_of_the_server(error)) return finish(error);
    if (!error) {
        auto a = report_from(reply, names_[at]);
        error = a.error;
        reports_[at] = std::move(a.value);
        if (!error && !reports_[at]) {
            const auto index = breaker_index_key(what_.name_space);
            scripts_.run_alone(index, {"ZREM", index, names_[at]}, what_.by);
        }
    }
    if (error) {
        reports_[at].emplace();
        reports_[at]->breaker = names_[at];
        reports_[at]->now.error = error;
    }
    if (--open_ == 0) round_over();
}

void redis_inspection::round_over() {
    for (auto& one : reports_) {
        if (one) page_.rows.push_back(std::move(*one));
    }
    what_.from = names_.back();
    if (more_ && page_.rows.size() < what_.rows) return next_names();
    if (more_) page_.next = what_.from;
    finish({});
}

void redis_inspection::finish(std::error_code error) {
    ops_.clear();
    auto done = std::exchange(done_, nullptr);
    if (done) done(error, error ? page{} : std::move(page_));
}

}  // namespace trinco::detail
