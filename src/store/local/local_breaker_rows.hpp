// The rows of one namespace's breakers, as the transactions of one store object see them. All on
// the worker's thread, inside a transaction unless said otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/breaker/record.hpp"
#include "store/breaker_store.hpp"
#include "store/local/local_worker.hpp"

namespace trinco::detail {

class local_breaker_rows {
public:
    // `seen`: the number of the last change when the file was opened.
    local_breaker_rows(std::string name_space, std::int64_t seen)
        : space_(std::move(name_space)), seen_(seen) {}

    [[nodiscard]] verdict exchange(local_file& in, local_round& after, const breaker_identity& who,
                                   const news& n);
    // Reads one row.
    [[nodiscard]] std::error_code look(local_file& in, const look_request& q, glance& seen);
    [[nodiscard]] std::error_code probe(local_file& in, local_round& after,
                                        const breaker_identity& who, const probe_request& p,
                                        probe_reply& reply);
    [[nodiscard]] std::error_code control(local_file& in, local_round& after,
                                          const control_request& c, view& reply);
    // Rows that are not records are left out.
    [[nodiscard]] page inspect(local_file& in, std::string_view prefix, std::string_view from,
                               std::size_t most);

    // The number of the last change, as of the last call of this store object.
    [[nodiscard]] std::int64_t seen() const noexcept { return seen_; }
    void see(local_file& in);
    // What changed after `seen`, in that order, which it moves on. Outside of a transaction, too.
    [[nodiscard]] std::vector<notice> changes(local_file& in, std::int64_t& seen);

private:
    struct row {
        std::int64_t id = 0;  // 0: none
        std::int64_t touched = 0;
        std::int64_t changed = 0;
        std::int64_t flushed = 0;
        fleet_record record;
        bool damaged = false;
    };
    [[nodiscard]] row load(local_file& in, std::string_view breaker, store_time now);
    // False when there is no room for another.
    [[nodiscard]] bool has_room(local_file& in, const row& r);
    void keep(local_file& in, std::string_view breaker, row& r, store_time now);
    void publish(local_file& in, local_round& after, row& r, const effects& did);
    void sweep(local_file& in, store_time now);

    std::string space_;
    std::int64_t seen_;
    std::int64_t swept_ = 0;  // up to this id
};

}  // namespace trinco::detail
