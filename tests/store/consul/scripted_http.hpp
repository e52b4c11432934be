// Addresses of Consul behind byte streams on virtual time: what they are asked, a test answers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/store/redis/scripted_server.hpp"
#include "wire/http1/http_reader.hpp"
#include "wire/http1/http_writer.hpp"

namespace trinco::detail::test {

class scripted_http final : public stream_factory {
public:
    using door = scripted_server::door;
    struct question {
        std::string host;
        http_request request;
        boot_clock::time_point at;
        std::shared_ptr<scripted_wire> wire;
        bool answered = false;

        // Whether somebody still wants to know.
        [[nodiscard]] bool waits() const { return !answered && wire->open; }
    };
    using asked = std::shared_ptr<question>;

    explicit scripted_http(loop& on) : on_(on) {}

    std::map<std::string, door> doors;  // by host; not named: open
    bool leads = true;                  // who asks who leads is told so at once
    std::vector<asked> all;
    std::size_t connections = 0;

    void answer(const asked& one, unsigned status, std::string body,
                std::vector<http_field> fields = {}) {
        http_response response;
        response.status = status;
        response.body = std::move(body);
        response.fields = std::move(fields);
        one->answered = true;
        one->wire->say(std::get<std::string>(bytes_of(response)));
    }
    // The questions that wait, of targets that begin so.
    [[nodiscard]] std::vector<asked> waiting(std::string_view target = "/v1/") const {
        std::vector<asked> some;
        for (const auto& one : all) {
            if (one->waits() && one->request.target.starts_with(target)) some.push_back(one);
        }
        return some;
    }

    op connect(const stream_address& to, deadline,
               completion<std::unique_ptr<byte_stream>> done) override {
        const auto found = doors.find(to.host);
        const auto how = found == doors.end() ? door::open : found->second;
        if (how == door::hang) return {};
        return on_.after(std::chrono::milliseconds(1), [this, how, host = to.host,
                                                        d = std::move(done)]() mutable {
            if (how == door::refuse) {
                return d(std::make_error_code(std::errc::connection_refused), nullptr);
            }
            ++connections;
            auto wire = std::make_shared<scripted_wire>(on_);
            const auto reader = std::make_shared<http_request_reader>();
            d({},
              std::make_unique<scripted_stream>(
                  wire, [this, host, reader, wire](scripted_wire&) { hear(host, *reader, wire); }));
        });
    }
    std::unique_ptr<stream_listener> listen(const stream_address&,
                                            std::error_code& error) override {
        error = std::make_error_code(std::errc::not_supported);
        return nullptr;
    }

private:
    void hear(const std::string& host, http_request_reader& reader,
              const std::shared_ptr<scripted_wire>& wire) {
        reader.feed(std::exchange(wire->came, {}));
        while (auto request = reader.next()) {
            all.push_back(
                std::make_shared<question>(question{host, std::move(*request), on_.now(), wire}));
            if (leads && all.back()->request.target.starts_with("/v1/status/leader")) {
                answer(all.back(), 200, "\"10.0.0.1:8300\"");
            }
        }
    }

    loop& on_;
};

}  // namespace trinco::detail::test
