// The settings of a pool that decide which of its servers are used: active checks, outliers.
#pragma once

#include "config/field.h"
#include "config/model.h"

namespace clockwise::config {

void read_health(const Field& field, Protocol protocol, std::optional<Health>& health);
void read_outlier(const Field& field, std::optional<Outlier>& outlier);

}  // namespace clockwise::config
