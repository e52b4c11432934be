#include "net/socket_factory.hpp"

#include <utility>

#include "net/connector.hpp"
#include "net/event_loop_impl.hpp"
#include "net/name_service.hpp"
#include "net/socket_listener.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

class socket_factory final : public stream_factory {
public:
    socket_factory(event_loop& on, name_lookup names)
        : on_(on),
          names_(std::make_shared<name_service>(loop_access::inside(on), std::move(names))) {}

    op connect(const stream_address& to, deadline by,
               completion<std::unique_ptr<byte_stream>> done) override {
        return connect_socket(on_, names_, to, by, std::move(done));
    }

    std::unique_ptr<stream_listener> listen(const stream_address& at,
                                            std::error_code& error) override {
        error = on_.check();
        if (error) return nullptr;
        return listen_at(loop_access::inside(on_), at, error);
    }

private:
    event_loop& on_;
    std::shared_ptr<name_service> names_;
};

}  // namespace

std::unique_ptr<stream_factory> make_socket_factory(event_loop& on, name_lookup names) {
    return std::make_unique<socket_factory>(on, std::move(names));
}

}  // namespace trinco::detail
