#include "store/consul/consul_way.hpp"

#include <utility>

#include "store/consul/consul_fault.hpp"
#include "store/consul/consul_requests.hpp"
#include "store/consul/consul_watches.hpp"
#include "store/consul/consul_wire.hpp"

namespace trinco::detail::consul {
namespace {

constexpr http_limits limits{.header = 16 * 1024, .body = 4 * 1024 * 1024};
constexpr std::string_view agent = "trinco/" TRINCO_VERSION;

}  // namespace

consul_way::consul_way(loop& on, std::unique_ptr<stream_factory> streams, consul_settings settings)
    : member_way(on, *this),
      loop_(on),
      streams_(std::move(streams)),
      tls_(std::move(settings.tls)),
      datacenter_(std::move(settings.datacenter)),
      name_space_(std::move(settings.name_space)),
      token_(std::move(settings.token), std::move(settings.token_file)) {
    for (auto& address : settings.addresses) {
        place one;
        one.name = text_of(address);
        one.address = std::move(address);
        one.address.tls = tls_;
        places_.push_back(std::move(one));
    }
}

op consul_way::call(std::size_t member, lane by, const consul_call& what, deadline until,
                    unique_function<void(http_answer)> done) {
    auto& at = places_[member];
    auto& slot = by == lane::requests ? at.requests : at.watches;
    if (!slot) {
        const auto kept = by == lane::requests ? consul_requests::at_once : consul_watches::at_once;
        slot = std::make_shared<http_client>(loop_, *streams_, at.address,
                                             http_client_options{.limits = limits, .kept = kept});
    }
    http_request request;
    request.method = what.method;
    request.target = what.path;
    auto query = what.query;
    if (!datacenter_.empty()) {
        query += (query.empty() ? "dc=" : "&dc=") + escaped(datacenter_, false);
    }
    if (!query.empty()) request.target += "?" + query;
    request.fields.push_back({"User-Agent", std::string(agent)});
    if (!token_.value().empty()) request.fields.push_back({"X-Consul-Token", token_.value()});
    if (!name_space_.empty()) request.fields.push_back({"X-Consul-Namespace", name_space_});
    request.body = what.body;
    // A client that was replaced lives as long as its calls.
    return op([kept = slot,
               under_way = slot->call(std::move(request), until, std::move(done))]() mutable {
        under_way.cancel();
        kept.reset();
    });
}

op consul_way::ask(std::size_t member, deadline by, unique_function<void(member_word)> done) {
    places_[member].requests = nullptr;
    places_[member].watches = nullptr;
    return call(member, lane::requests, {.path = "/v1/status/leader"}, by,
                [this, member, done = std::move(done)](const http_answer& said) mutable {
                    done(word_of(member, said));
                });
}

member_word consul_way::word_of(std::size_t member, const http_answer& said) const {
    const auto& its = name(member);
    if (is_answer(said)) {
        const auto leader = decode_text(said.response.body);
        if (!leader) {
            return {.hopeless = true,
                    .code = errc::invalid,
                    .sentence = its + ": it answers, but not as Consul does"};
        }
        if (leader->empty()) return {.sentence = its + ": its cluster has no leader"};
        return {.good = true};
    }
    auto what = judge(said, its, tls_);
    if (said.error == std::errc::timed_out && said.sent) {
        what.sentence = its + ": does not answer within 2 s";
    }
    // Nobody needs a right for this question; and whoever does not know it is no Consul.
    const bool will_say_it_again = what.hopeless || what.code == errc::denied ||
                                   what.code == errc::invalid || what.read_code == errc::invalid;
    const auto code = what.read_code.value_or(what.code);
    return {false, will_say_it_again, code, std::move(what.sentence),
            said.error == std::errc::connection_refused};
}

}  // namespace trinco::detail::consul
