// A conversation with a cluster of etcd, for a command that waits; see rpc_talk.hpp.
#pragma once

#include "apps/trinco/servers/rpc_talk.hpp"
#include "store/etcd/etcd_rpc.hpp"
#include "store/etcd/etcd_url.hpp"

namespace trinco::program {

template <class T>
using etcd_told = rpc_told<T>;

class etcd_talk : public rpc_talk<detail::etcd::rpc> {
public:
    explicit etcd_talk(detail::etcd_target to);
};

}  // namespace trinco::program
