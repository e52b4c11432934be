#include <string>
#include <variant>

#include "apps/trinco/breakers/foreign_keys.hpp"
#include "apps/trinco/demo/redis_keys.hpp"
#include "apps/trinco/doctor/examine_redis.hpp"
#include "apps/trinco/servers/servers.hpp"
#include "apps/trinco/stores/breaker_trouble.hpp"
#include "apps/trinco/stores/store_password.hpp"
#include "trinco/redis.hpp"

namespace trinco::program {
namespace {

void examine(const settings& with, doctor::examination& to) {
    const auto url = with_password(with);
    if (const auto* const why = std::get_if<problem>(&url)) {
        to.code = why->code;
        return to.bad("password", why->sentence, "'trinco help environment' says where it belongs");
    }
    doctor::examine_redis(std::get<std::string>(url), {with.name_space, store_words(with)}, to);
}

}  // namespace

server_store redis_server() {
    return {.how = drivers::redis(),
            .examine_breakers = examine,
            .clear = demo::remove_redis_keys,
            .remove_foreign = remove_foreign_keys};
}

}  // namespace trinco::program
