// The settings of a pool that decide how often and when a server is asked: retries, hedges, the
// connections to a server and the queue for them.
#pragma once

#include "config/field.h"
#include "config/model.h"

namespace clockwise::config {

void read_retry(const Field& field, Retry& retry);
void read_hedge(const Field& field, std::optional<Hedge>& hedge);
void read_connections(const Field& field, Connections& connections);

}  // namespace clockwise::config
