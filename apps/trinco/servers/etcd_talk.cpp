#include "apps/trinco/servers/etcd_talk.hpp"

#include "store/etcd/etcd_client.hpp"
#include "store/etcd/http2_transport.hpp"

namespace trinco::program {

etcd_talk::etcd_talk(detail::etcd_target to)
    : rpc_talk([to = std::move(to)](detail::event_loop& on) mutable {
          namespace etcd = detail::etcd;
          return etcd::make_etcd_client(
              on, etcd::make_http2_transport(on, std::move(to.members), std::move(to.tls)),
              {std::move(to.user), std::move(to.password)});
      }) {}

}  // namespace trinco::program
