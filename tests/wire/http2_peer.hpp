// A server of HTTP/2 for tests, bytes in and bytes out: it keeps what it is asked, and answers as a
// test has it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trinco::detail::test {

using peer_fields = std::vector<std::pair<std::string, std::string>>;

struct peer_settings {
    std::uint32_t streams_most = 1'000;
    std::uint32_t window = 65'535;  // of a stream
    bool reads = true;              // false: makes no room anew for what came
};

class http2_peer {
public:
    struct request {
        std::int32_t id = 0;
        std::map<std::string, std::string> fields;
        std::string body;
        bool whole = false;
        bool given_up = false;
        std::uint32_t why = 0;
    };

    explicit http2_peer(peer_settings with = {});
    ~http2_peer();

    void feed(std::string_view bytes);
    [[nodiscard]] std::string take();

    [[nodiscard]] std::deque<request>& requests() noexcept;
    [[nodiscard]] request& last();
    [[nodiscard]] int pings() const noexcept;
    // The client broke the rules.
    [[nodiscard]] bool is_broken() const noexcept;

    void head(std::int32_t id, const peer_fields& fields, bool last = false);
    void data(std::int32_t id, std::string bytes, bool last = false);
    void trailers(std::int32_t id, const peer_fields& fields);
    void reset(std::int32_t id, std::uint32_t code);
    void goaway(std::int32_t last_id, std::uint32_t code, const std::string& text = {});

    // As etcd does: one message, and how it went.
    void answer(std::int32_t id, const std::string& message);
    void refuse(std::int32_t id, int status, const std::string& text);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

// The message behind its prefix of gRPC.
[[nodiscard]] std::string framed(const std::string& message);
inline const peer_fields grpc_head_fields{{":status", "200"}, {"content-type", "application/grpc"}};

}  // namespace trinco::detail::test
