#include "apps/trinco/servers/consul_talk.hpp"

#include <utility>

namespace trinco::program {

consul_talk::consul_talk(detail::consul::consul_settings to)
    : rpc_talk([to = std::move(to)](detail::event_loop& on) mutable {
          return detail::consul::make_consul_client(on, std::move(to));
      }) {}

std::string consul_talk::why(const std::error_code& told) {
    auto said = text([told](detail::consul::rpc& link) { return link.why(told); });
    return said.empty() ? told.message() : said;
}

}  // namespace trinco::program
