#include "store/memory/memory_breakers.hpp"

#include <cassert>
#include <utility>

#include "core/names.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

namespace {

constexpr std::size_t max_under_way = 1'024;
constexpr std::size_t max_rows = 1'000;

}  // namespace

memory_breakers::memory_breakers(loop& on, std::shared_ptr<memory_breaker_server> server,
                                 breaker_identity who)
    : loop_(on), server_(std::move(server)), who_(std::move(who)), life_(std::make_shared<life>()) {
    assert(!check_instance(who_.instance) && !check_voter(who_.voter));
}

memory_breakers::~memory_breakers() {
    life_->ended = true;
    end_subscription();
}

std::error_code memory_breakers::hindrance(deadline by) {
    if (life_->under_way >= max_under_way) return errc::busy;
    if (by <= loop_.now()) return errc::unavailable;  // nothing was done, and nothing will be
    return {};
}

template <class T>
op memory_breakers::complete(completion<T> done, std::error_code error, T answer) {
    auto interest = std::make_shared<completion<T>>(std::move(done));
    ++life_->under_way;
    loop_.post([interest, own = life_, error, answer = std::move(answer)]() mutable {
        --own->under_way;
        if (own->ended) return;
        // Taken out first: the completion may destroy its op, and the store with it.
        if (auto f = std::exchange(*interest, nullptr)) f(error, std::move(answer));
    });
    return op([interest]() noexcept { *interest = nullptr; });
}

op memory_breakers::exchange(std::span<const news> batch, deadline by,
                             completion<std::vector<verdict>> done) {
    std::error_code error = hindrance(by);
    if (!error && batch.size() > max_news) error = errc::busy;
    std::vector<verdict> verdicts;
    if (!error) {
        verdicts.reserve(batch.size());
        for (const news& n : batch) verdicts.push_back(server_->exchange(who_, n));
    }
    return complete(std::move(done), error, std::move(verdicts));
}

op memory_breakers::look(const look_request& request, deadline by, completion<glance> done) {
    std::error_code error = hindrance(by);
    if (!error && check_breaker_name(request.breaker)) error = errc::invalid;
    glance seen;
    if (!error) seen = server_->look(request);
    return complete(std::move(done), error, std::move(seen));
}

op memory_breakers::probe(const probe_request& request, deadline by, completion<probe_reply> done) {
    std::error_code error = hindrance(by);
    if (!error && (request.token == 0 || check_breaker_name(request.breaker))) {
        error = errc::invalid;
    }
    probe_reply reply;
    if (!error) reply = server_->probe(who_, request);
    return complete(std::move(done), error, std::move(reply));
}

op memory_breakers::control(const control_request& request, deadline by, completion<view> done) {
    std::error_code error = hindrance(by);
    if (!error && check_breaker_name(request.breaker)) error = errc::invalid;
    view after;
    if (!error) after = server_->control(request, error);
    return complete(std::move(done), error, std::move(after));
}

op memory_breakers::inspect(std::string_view prefix, std::string_view from, std::size_t rows,
                            deadline by, completion<page> done) {
    std::error_code error = hindrance(by);
    if (prefix.ends_with('*')) prefix.remove_suffix(1);
    if (!error && (rows == 0 || rows > max_rows)) error = errc::invalid;
    page answer;
    if (!error) answer = server_->inspect(prefix, from, rows);
    return complete(std::move(done), error, std::move(answer));
}

op memory_breakers::subscribe(unique_function<void(const notice&)> on_notice) {
    end_subscription();
    listener_ = std::make_shared<memory_breaker_server::listener>();
    listener_->heard = std::move(on_notice);
    server_->subscribe(loop_, listener_);
    return op([server = server_, listener = listener_]() noexcept {
        server->unsubscribe(*listener);
        listener->ended = true;
    });
}

op memory_breakers::stop(deadline, completion<int> done) {
    end_subscription();
    return complete(std::move(done), {}, 0);
}

void memory_breakers::end_subscription() noexcept {
    if (!listener_) return;
    server_->unsubscribe(*listener_);
    listener_->ended = true;
    listener_ = nullptr;
}

}  // namespace trinco::detail
