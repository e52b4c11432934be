#include "http2_peer.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace trinco::detail::test {
namespace {

void must(int result) {
    if (result != 0) throw std::runtime_error(::nghttp2_strerror(result));
}

std::vector<nghttp2_nv> list_of(const peer_fields& fields) {
    std::vector<nghttp2_nv> all;
    for (const auto& [name, value] : fields) {
        all.push_back({reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                       reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
                       name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    return all;
}

}  // namespace

std::string framed(const std::string& message) {
    std::string out(5, '\0');
    for (std::size_t i = 4, size = message.size(); i > 0; --i, size >>= 8) {
        out[i] = static_cast<char>(size & 255);
    }
    return out + message;
}

struct http2_peer::impl {
    struct reply {
        std::string bytes;
        bool last = false;
        std::optional<peer_fields> trailers;
    };

    ~impl() { ::nghttp2_session_del(session); }
    request* find(std::int32_t id) {
        const auto at = std::find_if(requests.begin(), requests.end(),
                                     [id](const request& r) { return r.id == id; });
        return at == requests.end() ? nullptr : &*at;
    }
    void came(const nghttp2_frame& frame) {
        if (frame.hd.type == NGHTTP2_PING && (frame.hd.flags & NGHTTP2_FLAG_ACK) == 0) ++pings;
        if (frame.hd.type == NGHTTP2_GOAWAY) broken = frame.goaway.error_code != 0;
        auto* const one = find(frame.hd.stream_id);
        if (one == nullptr) return;
        if (frame.hd.type == NGHTTP2_RST_STREAM) {
            one->given_up = true;
            one->why = frame.rst_stream.error_code;
        } else if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
            one->whole = true;
        }
    }
    ::ssize_t fill(std::int32_t id, std::uint8_t* to, std::size_t room, std::uint32_t& flags) {
        auto& from = replies[id];
        const auto n = std::min(room, from.bytes.size());
        std::memcpy(to, from.bytes.data(), n);
        from.bytes.erase(0, n);
        if (!from.bytes.empty()) return static_cast<::ssize_t>(n);
        if (from.trailers) {
            flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
            const auto fields = list_of(*from.trailers);
            must(::nghttp2_submit_trailer(session, id, fields.data(), fields.size()));
        } else if (from.last) {
            flags |= NGHTTP2_DATA_FLAG_EOF;
        } else if (n == 0) {
            return NGHTTP2_ERR_DEFERRED;
        }
        return static_cast<::ssize_t>(n);
    }

    nghttp2_session* session = nullptr;
    std::deque<request> requests;
    std::map<std::int32_t, reply> replies;
    int pings = 0;
    bool broken = false;
};

http2_peer::http2_peer(peer_settings with) : impl_(std::make_unique<impl>()) {
    nghttp2_session_callbacks* calls = nullptr;
    must(::nghttp2_session_callbacks_new(&calls));
    ::nghttp2_session_callbacks_set_on_begin_headers_callback(
        calls, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
            request one;
            one.id = frame->hd.stream_id;
            static_cast<impl*>(user)->requests.push_back(std::move(one));
            return 0;
        });
    ::nghttp2_session_callbacks_set_on_header_callback(
        calls, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                  std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                  std::uint8_t, void* user) {
            auto* const one = static_cast<impl*>(user)->find(frame->hd.stream_id);
            one->fields[std::string(reinterpret_cast<const char*>(name), name_size)] =
                std::string(reinterpret_cast<const char*>(value), value_size);
            return 0;
        });
    ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        calls, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                  std::size_t size, void* user) {
            if (auto* const one = static_cast<impl*>(user)->find(id)) {
                one->body.append(reinterpret_cast<const char*>(bytes), size);
            }
            return 0;
        });
    ::nghttp2_session_callbacks_set_on_frame_recv_callback(
        calls, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
            static_cast<impl*>(user)->came(*frame);
            return 0;
        });
    nghttp2_option* options = nullptr;
    must(::nghttp2_option_new(&options));
    ::nghttp2_option_set_no_auto_window_update(options, with.reads ? 0 : 1);
    must(::nghttp2_session_server_new2(&impl_->session, calls, impl_.get(), options));
    ::nghttp2_option_del(options);
    ::nghttp2_session_callbacks_del(calls);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, with.streams_most},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, with.window}};
    must(::nghttp2_submit_settings(impl_->session, NGHTTP2_FLAG_NONE, settings, 2));
}

http2_peer::~http2_peer() = default;

void http2_peer::feed(std::string_view bytes) {
    if (bytes.empty()) return;
    const auto n = ::nghttp2_session_mem_recv(
        impl_->session, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (n < 0) impl_->broken = true;
}

std::string http2_peer::take() {
    std::string out;
    for (;;) {
        const std::uint8_t* bytes = nullptr;
        const auto n = ::nghttp2_session_mem_send(impl_->session, &bytes);
        if (n <= 0) return out;
        out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
    }
}

std::deque<http2_peer::request>& http2_peer::requests() noexcept {
    return impl_->requests;
}

http2_peer::request& http2_peer::last() {
    if (impl_->requests.empty()) throw std::runtime_error("nothing was asked");
    return impl_->requests.back();
}

int http2_peer::pings() const noexcept {
    return impl_->pings;
}

bool http2_peer::is_broken() const noexcept {
    return impl_->broken;
}

void http2_peer::head(std::int32_t id, const peer_fields& fields, bool last) {
    const auto list = list_of(fields);
    nghttp2_data_provider body{};
    body.read_callback = [](nghttp2_session*, std::int32_t of, std::uint8_t* to, std::size_t room,
                            std::uint32_t* flags, nghttp2_data_source*, void* user) -> ::ssize_t {
        return static_cast<impl*>(user)->fill(of, to, room, *flags);
    };
    must(::nghttp2_submit_response(impl_->session, id, list.data(), list.size(),
                                   last ? nullptr : &body));
}

void http2_peer::data(std::int32_t id, std::string bytes, bool last) {
    auto& to = impl_->replies[id];
    to.bytes += bytes;
    to.last = last;
    (void)::nghttp2_session_resume_data(impl_->session, id);
}

void http2_peer::trailers(std::int32_t id, const peer_fields& fields) {
    impl_->replies[id].trailers = fields;
    (void)::nghttp2_session_resume_data(impl_->session, id);
}

void http2_peer::reset(std::int32_t id, std::uint32_t code) {
    must(::nghttp2_submit_rst_stream(impl_->session, NGHTTP2_FLAG_NONE, id, code));
}

void http2_peer::goaway(std::int32_t last_id, std::uint32_t code, const std::string& text) {
    must(::nghttp2_submit_goaway(impl_->session, NGHTTP2_FLAG_NONE, last_id, code,
                                 reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

void http2_peer::answer(std::int32_t id, const std::string& message) {
    head(id, grpc_head_fields);
    data(id, framed(message));
    trailers(id, {{"grpc-status", "0"}, {"grpc-message", ""}});
}

void http2_peer::refuse(std::int32_t id, int status, const std::string& text) {
    auto fields = grpc_head_fields;
    fields.emplace_back("grpc-status", std::to_string(status));
    fields.emplace_back("grpc-message", text);
    head(id, fields, true);
}

}  // namespace trinco::detail::test
