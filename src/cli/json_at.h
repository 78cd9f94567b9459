// Members of an answer that may lack them: what is missing, or of another kind, reads as empty.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace clockwise::cli {

[[nodiscard]] std::string text_at(const boost::json::object& object, std::string_view name);
[[nodiscard]] double number_at(const boost::json::object& object, std::string_view name);
// Valid as long as `object`.
[[nodiscard]] const boost::json::array& array_at(const boost::json::object& object,
                                                 std::string_view name);
[[nodiscard]] const boost::json::object& object_at(const boost::json::object& object,
                                                   std::string_view name);
// The objects in an array; what else is in it is left out.
[[nodiscard]] std::vector<const boost::json::object*> objects_at(const boost::json::object& object,
                                                                 std::string_view name);

}  // namespace clockwise::cli
