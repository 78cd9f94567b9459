// What decides the owner of a key beside the servers, under the names of the configuration.
//
// Two pools with equal settings and equal servers place every key alike. The digest is made of
// them, and the admin API shows them so that the rings of two proxies can be compared. Pure.
#pragma once

#include <boost/json/object.hpp>

#include "config/model.h"

namespace clockwise::upstream {

// {"scheme", the parameters that it takes, "hash_tag", "key", "key_ignore"}, and "namespace" and
// "replicas" where they are other than none and one. Each as it takes effect: a default that is
// written out is the same as one left out.
[[nodiscard]] boost::json::object ring_settings(const config::Ring& ring);

}  // namespace clockwise::upstream
