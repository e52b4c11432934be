#include "store/redis/sentinel_jury.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "store/redis/sentinel_seeker.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail {
namespace {

[[nodiscard]] std::string_view field_in(const resp_reply& reply, std::string_view name) {
    for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
        if (reply.elements[i].text == name) return reply.elements[i + 1].text;
    }
    return {};
}

// "master,s_down,o_down"
[[nodiscard]] bool has_flag(std::string_view flags, std::string_view wanted) {
    while (!flags.empty()) {
        const auto end = std::min(flags.find(','), flags.size());
        if (flags.substr(0, end) == wanted) return true;
        flags.remove_prefix(std::min(end + 1, flags.size()));
    }
    return false;
}

[[nodiscard]] redis_refusal refusal_because(const std::string& why) {
    return {errc::unavailable, "the primary was away, and " + why};
}

// One round, with a connection to each Sentinel.
struct round : std::enable_shared_from_this<round> {
    void came(std::size_t from, std::optional<sentinel_word> word) {
        if (over || spoken[from]) return;
        spoken[from] = true;
        if (word) words.push_back(std::move(*word));
        if (std::find(spoken.begin(), spoken.end(), false) == spoken.end()) finish();
    }
    void finish() {
        if (over) return;
        auto f = end();
        if (f) f(std::move(words));
    }
    // May run in a callback of a connection.
    sentinel_jury::on_words end() {
        over = true;
        timer.cancel();
        answers.clear();
        links.clear();
        return std::move(done);
    }

    sentinel_jury::on_words done;
    std::vector<std::unique_ptr<redis_link>> links;
    std::vector<op> answers;
    std::vector<bool> spoken;
    std::vector<sentinel_word> words;
    bool over = false;
    op timer;
};

}  // namespace

std::optional<sentinel_word> word_in(const resp_reply& reply) {
    if (!reply.is(resp_reply::kind_t::array)) return {};
    auto primary = primary_in(
        resp_reply::of(std::vector{resp_reply::of(std::string(field_in(reply, "ip"))),
                                   resp_reply::of(std::string(field_in(reply, "port")))}));
    if (!primary) return {};
    sentinel_word word;
    word.primary = std::move(*primary);
    const auto epoch = field_in(reply, "config-epoch");
    std::from_chars(epoch.data(), epoch.data() + epoch.size(), word.epoch);
    const auto flags = field_in(reply, "flags");
    word.unreachable = has_flag(flags, "s_down");
    word.replacing = has_flag(flags, "o_down") || has_flag(flags, "failover_in_progress");
    return word;
}

sentinel_verdict judge_return(const std::vector<sentinel_word>& words,
                              const stream_address& is_back) {
    if (words.empty()) return {};
    const auto latest = std::max_element(
        words.begin(), words.end(),
        [](const sentinel_word& a, const sentinel_word& b) { return a.epoch < b.epoch; });
    if (latest->primary != is_back) {
        return {refusal_because("another server has become the primary"), latest->primary};
    }
    // What is said of another server, by one that has not heard of this one yet, does not count.
    std::size_t speakers = 0;
    std::size_t apart = 0;
    bool replacing = false;
    for (const auto& word : words) {
        if (word.primary != is_back) continue;
        ++speakers;
        if (word.unreachable) ++apart;
        replacing = replacing || word.replacing;
    }
    if (replacing) return {refusal_because("the Sentinels are replacing it"), {}};
    if (apart >= std::min<std::size_t>(2, speakers)) {
        return {refusal_because("the Sentinels do not reach it yet"), {}};
    }
    return {};
}

op sentinel_jury::ask(deadline by, on_words done) {
    const auto r = std::make_shared<round>();
    r->done = std::move(done);
    r->spoken.resize(target_.nodes.size());
    r->timer = on_.at(by, [raw = r.get()] { raw->shared_from_this()->finish(); });
    const auto command =
        resp_command(std::vector<std::string>{"SENTINEL", "MASTER", target_.primary});
    for (std::size_t i = 0; i < target_.nodes.size(); ++i) {
        redis_link_options options;
        options.steps = login_steps(target_.sentinel_login, 0);
        options.keep_unsent = false;
        auto to = target_.nodes[i];
        to.tls = target_.tls;
        const auto spoke = [this, i, weak = std::weak_ptr(r)](std::error_code error,
                                                              const resp_reply& reply) {
            const auto alive = weak.lock();
            if (!alive) return;
            auto word = error ? std::nullopt : word_in(reply);
            if (word) word->primary.tls = target_.tls;
            alive->came(i, std::move(word));
        };
        r->links.push_back(
            std::make_unique<redis_link>(on_, streams_, std::move(to), std::move(options)));
        r->answers.push_back(r->links.back()->request(command, by, spoke));
    }
    return op([r] { (void)r->end(); });
}

}  // namespace trinco::detail
