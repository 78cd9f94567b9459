#include "cli/json_at.h"

#include <boost/json/value.hpp>

namespace clockwise::cli {

namespace json = boost::json;

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

double number_at(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  boost::system::error_code no_number;
  return found ? found->to_number<double>(no_number) : 0;
}

const json::array& array_at(const json::object& object, std::string_view name) {
  static const json::array kNone;
  const json::value* found = object.if_contains(name);
  return found && found->is_array() ? found->get_array() : kNone;
}

const json::object& object_at(const json::object& object, std::string_view name) {
  static const json::object kNone;
  const json::value* found = object.if_contains(name);
  return found && found->is_object() ? found->get_object() : kNone;
}

std::vector<const json::object*> objects_at(const json::object& object, std::string_view name) {
  std::vector<const json::object*> objects;
  for (const json::value& item : array_at(object, name))
    if (item.is_object()) objects.push_back(&item.get_object());
  return objects;
}

}  // namespace clockwise::cli
