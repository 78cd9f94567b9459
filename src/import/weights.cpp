#include "import/weights.h"

#include <algorithm>
#include <numeric>

namespace clockwise::importer {

Weights weigh(const std::vector<Server>& servers) {
  Weights all;
  for (const Server& server : servers) {
    const auto weight = static_cast<std::uint64_t>(server.weight);
    all.divisor = std::gcd(all.divisor, weight);
    all.largest = std::max(all.largest, weight);
    all.total += weight;
  }
  return all;
}

void scale_down(std::vector<Server>& servers, const Weights& weights) {
  for (Server& server : servers)
    server.weight = std::min(server.weight / static_cast<double>(weights.divisor),
                             static_cast<double>(kMaxWeight));
}

}  // namespace clockwise::importer
