#include "store/redis/sentinel_seeker.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "core/mutant.hpp"
#include "core/quoted.hpp"
#include "trinco/error.hpp"
#include "wire/resp/resp_writer.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto next_after = 200ms;
constexpr std::size_t longest_host = 255;

[[nodiscard]] std::string command_for(const std::string& name) {
    return resp_command(std::vector<std::string>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
}

}  // namespace

std::optional<stream_address> primary_in(const resp_reply& reply) {
    if (!reply.is(resp_reply::kind_t::array) || reply.elements.size() != 2) return {};
    const auto& host = reply.elements[0].text;
    const auto& figures = reply.elements[1].text;
    std::uint16_t port = 0;
    const auto* const end = figures.data() + figures.size();
    const auto read = std::from_chars(figures.data(), end, port);
    const bool is_port = read.ec == std::errc() && read.ptr == end && port != 0;
    if (!is_port || host.empty() || host.size() > longest_host) return {};
    return stream_address::tcp(host, port);
}

// One search, with a connection to each Sentinel that was asked.
struct sentinel_seeker::question : std::enable_shared_from_this<question> {
    // Ends it; what it had to say to whom. May run in a callback of a connection.
    on_found end() {
        over = true;
        patience.cancel();
        timer.cancel();
        answers.clear();
        links.clear();
        return std::move(done);
    }

    on_found done;
    deadline by;
    std::vector<stream_address> order;
    std::vector<std::unique_ptr<redis_link>> links;
    std::vector<op> answers;
    std::vector<bool> failed;
    bool all_denied = true;
    bool over = false;
    std::string sentences;
    op patience;  // with the one that was asked last
    op timer;
};

sentinel_seeker::sentinel_seeker(loop& on, stream_factory& streams, const redis_target& target)
    : on_(on), streams_(streams), target_(target), order_(target.nodes) {
    for (auto& one : order_) one.tls = target.tls;
}

sentinel_seeker::~sentinel_seeker() {
    if (asking_) (void)asking_->end();
}

op sentinel_seeker::find(deadline by, on_found done) {
    if (std::exchange(doubtful_, false) && !TRINCO_MUTANT("sentinel_is_believed_for_ever")) {
        std::rotate(order_.begin(), order_.begin() + 1, order_.end());
    }
    if (asking_) (void)asking_->end();
    const auto q = asking_ = std::make_shared<question>();
    q->done = std::move(done);
    q->by = by;
    q->order = order_;
    q->failed.resize(order_.size());
    q->timer = on_.at(by, [this, raw = q.get()] { give_up(raw->shared_from_this()); });
    ask_next(q);
    return op([weak = std::weak_ptr(q)] {
        if (const auto dropped = weak.lock()) (void)dropped->end();
    });
}

void sentinel_seeker::ask_next(const question_ptr& q) {
    const auto which = q->links.size();
    if (which == q->order.size()) return;
    redis_link_options options;
    options.steps = login_steps(target_.sentinel_login, 0);
    options.keep_unsent = false;
    const auto weak = std::weak_ptr(q);
    q->links.push_back(std::make_unique<redis_link>(on_, streams_, q->order[which],
                                                    std::move(options),
                                                    [this, weak, which](const redis_link_event& e) {
                                                        const auto alive = weak.lock();
                                                        if (alive && !e.up)
                                                            failed(alive, which, e.reason);
                                                    }));
    q->answers.push_back(
        q->links.back()->request(command_for(target_.primary), q->by,
                                 [this, weak, which](std::error_code error, const resp_reply& r) {
                                     const auto alive = weak.lock();
                                     if (alive && !error) answered(alive, which, r);
                                 }));
    q->patience =
        on_.after(next_after, [this, raw = q.get()] { ask_next(raw->shared_from_this()); });
}

void sentinel_seeker::answered(const question_ptr& q, std::size_t which, const resp_reply& reply) {
    if (q->over) return;
    auto primary = primary_in(reply);
    if (!primary) {
        const auto refusal = refusal_of({{"SENTINEL"}}, reply);
        const auto at = text_of(q->order[which]);
        return failed(q, which,
                      refusal ? *refusal
                              : redis_refusal{errc::unavailable,
                                              "the Sentinel at " + at + " knows no primary " +
                                                  detail::quoted(target_.primary)});
    }
    primary->tls = target_.tls;
    const auto useful = std::find(order_.begin(), order_.end(), q->order[which]);
    std::rotate(order_.begin(), useful, useful + 1);
    doubtful_ = true;
    auto done = q->end();
    if (done) done(std::move(*primary));
}

void sentinel_seeker::failed(const question_ptr& q, std::size_t which, const redis_refusal& why) {
    if (q->over || q->failed[which]) return;
    q->failed[which] = true;
    q->all_denied = q->all_denied && why.error == errc::denied;
    q->sentences += (q->sentences.empty() ? ": " : "; ") + why.why;
    q->links[which].reset();
    if (std::find(q->failed.begin(), q->failed.end(), false) == q->failed.end()) return give_up(q);
    ask_next(q);
}

void sentinel_seeker::give_up(const question_ptr& q) {
    if (q->over) return;
    const bool all = std::find(q->failed.begin(), q->failed.end(), false) == q->failed.end();
    redis_refusal why{all && q->all_denied ? errc::denied : errc::unavailable,
                      "no Sentinel says where the primary " + detail::quoted(target_.primary) +
                          " is" + (q->sentences.empty() ? ": none answers" : q->sentences)};
    auto done = q->end();
    if (done) done(std::move(why));
}

}  // namespace trinco::detail
