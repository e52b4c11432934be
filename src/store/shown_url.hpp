// What of a store's URL may be shown in messages, logs and metrics.
#pragma once

#include <string>
#include <string_view>

namespace trinco::detail {

// The URL without what may be a secret, each replaced by ***:
//
//   scheme://***@host     all before the last @, wherever that stands: a password may hold any
//                         character, and a URL that lost a slash or its scheme may hold one as well
//   ...?password=***      all that follows a key which has pass, pwd, token, secret, auth, key,
//                         cred or a percent sign in it, for the same reason
//
// When in doubt it shows less. Only local: and memory: without an authority have no users: an @ in
// a path or name of theirs is shown. Pure.
[[nodiscard]] std::string shown_url(std::string_view url);

// The scheme in lower case, without its colon; empty when the URL does not begin with one.
[[nodiscard]] std::string scheme_of(std::string_view url);

}  // namespace trinco::detail
