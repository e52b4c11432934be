#include "apps/trinco/demo/etcd_keys.hpp"
#include "apps/trinco/doctor/examine_etcd.hpp"
#include "apps/trinco/servers/servers.hpp"
#include "trinco/etcd.hpp"

namespace trinco::program {

server_store etcd_server() {
    return {.how = drivers::etcd(),
            .examine_locks = doctor::examine_etcd,
            .clear = demo::remove_etcd_keys};
}

}  // namespace trinco::program
