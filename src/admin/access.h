// Who may change something through the admin API.
//
// With a token: whoever shows it. Without: only peers on this machine. In both cases a browser that
// was lured here by another page is turned away, since it would act with its user's reach.
#pragma once

#include <optional>
#include <string>

#include "admin/api.h"

namespace clockwise::admin {

// Nothing when the change may go on, else the refusal.
[[nodiscard]] std::optional<Response> refuse_change(const Request& request,
                                                    const std::string& token);

// Compares in a time that tells nothing but the length.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b) noexcept;

// A JSON error answer.
[[nodiscard]] Response error_response(unsigned status, std::string_view code,
                                      std::string_view message);

}  // namespace clockwise::admin
