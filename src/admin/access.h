// Who may do what through the admin API.
//
// Reading and planning: whoever gets here. Changing something: with a token whoever shows it,
// without one only peers on this machine. A browser that was lured here by another page may only
// read, whatever it shows, since it would act with its user's reach.
#pragma once

#include <optional>
#include <string>

#include "admin/api.h"

namespace clockwise::admin {

// Nothing when the call may go on, else the refusal.
[[nodiscard]] std::optional<Response> refuse_other_site(const Request& request);
[[nodiscard]] std::optional<Response> refuse_change(const Request& request,
                                                    const std::string& token);

// Compares in a time that tells nothing but the length.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b) noexcept;

// A JSON error answer.
[[nodiscard]] Response error_response(unsigned status, std::string_view code,
                                      std::string_view message);

}  // namespace clockwise::admin
