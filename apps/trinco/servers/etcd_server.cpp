#include "apps/trinco/servers/servers.hpp"
#include "trinco/etcd.hpp"

namespace trinco::program {

server_store etcd_server() {
    return {.how = drivers::etcd()};
}

}  // namespace trinco::program
