#include "apps/trinco/doctor/examine_consul.hpp"
#include "apps/trinco/servers/servers.hpp"
#include "trinco/consul.hpp"

namespace trinco::program {

server_store consul_server() {
    return {.how = drivers::consul(), .examine_locks = doctor::examine_consul};
}

}  // namespace trinco::program
