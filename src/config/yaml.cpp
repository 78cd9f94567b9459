#include "config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <exception>
#include <sstream>
#include <unordered_map>

#include "config/yaml_depth.h"
#include "config/yaml_text.h"

namespace clockwise::config {
namespace {

// Thrown through the library's parser, caught in parse_yaml().
struct Stop : std::exception {
  Stop(Place at, std::string text) : place(at), message(std::move(text)) {}
  Place place;
  std::string message;
};

// A place as the walk through the text needs it, and as messages do.
struct Spot {
  std::size_t offset = 0;
  Place place;
};

Stop too_deep(Place place) {
  return {place, fmt::format("nested deeper than {} levels", kMaxDepth)};
}

Stop too_wide(Place place) {
  return {place, fmt::format("has more than {} values in one bracket; write the list in lines that "
                             "begin with a dash",
                             kMaxCommas)};
}

constexpr std::string_view kNeverClosed = "is never closed; is the file cut off?";

// Builds the tree from the parser's events.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const Source& source, Report& report) : source_(source), report_(report) {}

  [[nodiscard]] Document take() { return std::move(document_); }
  [[nodiscard]] bool is_empty() const noexcept {
    return document_.root == nullptr || document_.root->kind == Kind::null;
  }
  // What the library said, in words that lead to the place to mend.
  [[nodiscard]] Stop explain(const YAML::Exception& error) const;

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    begin(Kind::sequence, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    begin(Kind::map, mark, tag, anchor, style);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    Node* node;
    YAML::anchor_t anchor;
    bool flow;
    std::size_t nodes_before;
    std::optional<Entry> key;  // of a map: read, its value not yet
  };

  [[nodiscard]] Spot spot(std::size_t offset) const { return {offset, source_.place_of(offset)}; }
  [[nodiscard]] Spot spot(const YAML::Mark& mark) const;
  [[nodiscard]] Spot value_spot(const YAML::Mark& mark) const;
  [[nodiscard]] bool expects_key() const noexcept;
  [[nodiscard]] bool in_flow() const noexcept { return !open_.empty() && open_.back().flow; }

  Node& add(Kind kind, const Spot& at);
  void attach(const Node& node);
  void begin(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YAML::EmitterStyle::value style);
  void end();
  void count(std::size_t nodes, Place place);
  void remember(YAML::anchor_t anchor, const Node& node, std::size_t size);
  void refuse_tag(const std::string& tag, Place place);
  [[nodiscard]] Stop odd_key(Place place) const;
  [[nodiscard]] Stop open_bracket(Place place) const;

  struct Anchored {
    const Node* node;
    std::size_t size;  // in nodes, aliases expanded
  };

  const Source& source_;
  Report& report_;
  Document document_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::size_t total_ = 0;
  Spot last_;  // of the newest key or value
};

// Events.

void Builder::OnDocumentStart(const YAML::Mark& mark) {
  if (document_.root == nullptr) return;
  const Place place = spot(mark).place;
  const bool marked = source_.from({place.line, 1}).starts_with("---") ||
                      source_.from({place.line - 1, 1}).starts_with("...");
  throw Stop(place, marked ? "a second document starts here; a configuration is one document"
                           : "does not belong to what stands above; check the indentation");
}

void Builder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  Spot at = value_spot(mark);
  const bool written =
      yaml_text::is_null_word(source_.text(), at.offset) && at.place.line == last_.place.line;
  if (!written) at = spot(yaml_text::dash_between(source_.text(), last_.offset, at.offset));
  Node& node = add(Kind::null, at);
  node.written = written;
  remember(anchor, node, 1);
  attach(node);
}

void Builder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const Spot at = spot(mark);
  const auto found = anchors_.find(anchor);
  if (found == anchors_.end()) throw Stop(at.place, "this alias stands inside what it names");
  if (expects_key()) throw Stop(at.place, "a key must be plain text, not an alias");
  // Shared, not copied; but whoever walks the tree passes it once more.
  count(found->second.size, at.place);
  last_ = at;
  attach(*found->second.node);
}

void Builder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       const std::string& value) {
  const Spot at = value_spot(mark);
  refuse_tag(tag, at.place);
  const char first = at.offset < source_.text().size() ? source_.text()[at.offset] : ' ';
  const bool in_quotes = first == '"' || first == '\'';
  // The library takes the end of the file for the closing quote.
  if (in_quotes && yaml_text::behind_quoted(source_.text(), at.offset) == yaml_text::kNone)
    throw Stop(at.place, fmt::format("the text in quotes {}", kNeverClosed));
  if (expects_key()) {
    open_.back().key = Entry{value, at.place, nullptr};
    last_ = at;
    return;
  }
  Node& node = add(Kind::scalar, at);
  node.text = value;
  node.quoted = in_quotes || first == '|' || first == '>';
  remember(anchor, node, 1);
  attach(node);
}

void Builder::begin(Kind kind, const YAML::Mark& mark, const std::string& tag,
                    YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
  const Spot at = value_spot(mark);
  refuse_tag(tag, at.place);
  if (open_.size() >= kMaxDepth) throw too_deep(at.place);
  const std::size_t before = total_;
  Node& node = add(kind, at);
  open_.push_back({&node, anchor, style == YAML::EmitterStyle::Flow, before, std::nullopt});
}

void Builder::end() {
  const Open closed = std::move(open_.back());
  open_.pop_back();
  remember(closed.anchor, *closed.node, total_ - closed.nodes_before);
  attach(*closed.node);
}

// The tree.

Node& Builder::add(Kind kind, const Spot& at) {
  if (expects_key()) throw odd_key(at.place);
  count(1, at.place);
  Node& node = document_.nodes.emplace_back();
  node.kind = kind;
  node.place = at.place;
  last_ = at;
  return node;
}

void Builder::attach(const Node& node) {
  if (open_.empty()) {
    document_.root = &node;
    return;
  }
  Open& parent = open_.back();
  if (parent.node->kind == Kind::sequence) {
    parent.node->items.push_back(&node);
    return;
  }
  parent.key->value = &node;
  parent.node->entries.push_back(std::move(*parent.key));
  parent.key.reset();
}

bool Builder::expects_key() const noexcept {
  return !open_.empty() && open_.back().node->kind == Kind::map && !open_.back().key;
}

void Builder::count(std::size_t nodes, Place place) {
  total_ += nodes;
  if (total_ > kMaxNodes)
    throw Stop(place, fmt::format("more than {} values, aliases counted", kMaxNodes));
}

void Builder::remember(YAML::anchor_t anchor, const Node& node, std::size_t size) {
  if (anchor != 0) anchors_[anchor] = {&node, size};
}

void Builder::refuse_tag(const std::string& tag, Place place) {
  if (tag.empty() || tag == "?" || tag == "!") return;
  report_.error(source_.problem(
      place, fmt::format("the tag {} is not supported: write the plain value", tag)));
}

// Places. The library counts columns in bytes.

Spot Builder::spot(const YAML::Mark& mark) const {
  if (mark.line < 0 || mark.column < 0) return spot(source_.text().size());
  return spot(source_.offset_of_byte(static_cast<std::size_t>(mark.line),
                                     static_cast<std::size_t>(mark.column)));
}

Spot Builder::value_spot(const YAML::Mark& mark) const {
  const Spot at = spot(mark);
  const std::size_t value = yaml_text::skip_properties(source_.text(), at.offset);
  return value == at.offset ? at : spot(value);
}

// Syntax errors.

// Text cut before its closing bracket reads as a collection that stands as a key.
Stop Builder::odd_key(Place place) const {
  if (open_.back().node->place != place) return {place, "a key must be plain text"};
  const bool listed = open_.size() > 1 && open_[open_.size() - 2].flow;
  const Place bracket = listed ? open_[open_.size() - 2].node->place : place;
  return {bracket, fmt::format("the {} is never closed (is the file cut off?), or stands as a key",
                               source_.from(bracket).substr(0, 1))};
}

Stop Builder::open_bracket(Place place) const {
  const Node& opened = *open_.back().node;
  const char bracket = opened.kind == Kind::map ? '{' : '[';
  if (place <= opened.place || place >= source_.end())
    return {opened.place, fmt::format("the {} {}", bracket, kNeverClosed)};
  return {place,
          fmt::format("the {} of line {} is not closed before this", bracket, opened.place.line)};
}

struct Explanation {
  std::string_view said;
  std::string_view meant;
};

const std::array<Explanation, 5> kExplanations{{
    {YAML::ErrorMsg::UNKNOWN_ANCHOR, "this alias names no anchor above it"},
    {YAML::ErrorMsg::END_OF_MAP,
     "not valid YAML here; check the indentation, quotes and colons above"},
    {YAML::ErrorMsg::END_OF_SEQ,
     "not valid YAML here; check the indentation, quotes and dashes above"},
    {YAML::ErrorMsg::MAP_VALUE,
     "a colon is not possible here; quote the text, or check the line above"},
    {YAML::ErrorMsg::BAD_FILE, "not valid YAML: nested too deeply"},
}};

Stop Builder::explain(const YAML::Exception& error) const {
  const Spot at = spot(error.mark);
  if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) {
    // The library points at the end of the file: find the quote that was opened.
    const std::size_t quote = yaml_text::next_quote(source_.text(), last_.offset);
    return {quote == yaml_text::kNone ? at.place : source_.place_of(quote),
            fmt::format("the text in quotes {}", kNeverClosed)};
  }
  const bool flow_ends =
      error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
  if (in_flow() && flow_ends) return open_bracket(at.place);
  const std::size_t tab = yaml_text::tab_in_indentation(source_.text(), at.offset);
  if (!in_flow() && tab != yaml_text::kNone)
    return {source_.place_of(tab), "a tab in the indentation: use spaces"};
  for (const Explanation& one : kExplanations)
    if (one.said == error.msg) return {at.place, std::string(one.meant)};
  return {at.place, "not valid YAML: " + error.msg};
}

void parse_into(Builder& builder, const Source& source) {
  if (const auto beyond = bracket_beyond(source.text(), {kMaxDepth, kMaxCommas})) {
    const Place place = source.place_of(beyond->offset);
    throw beyond->too_wide ? too_wide(place) : too_deep(place);
  }
  std::istringstream stream(source.text());
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw builder.explain(error);
  }
}

}  // namespace

std::optional<Document> parse_yaml(const Source& source, Report& report) {
  Builder builder(source, report);
  try {
    parse_into(builder, source);
  } catch (const Stop& stop) {
    report.error(source.problem(stop.place, stop.message));
    return std::nullopt;
  }
  if (builder.is_empty()) {
    report.error(source.problem({}, "no configuration: the file is empty"));
    return std::nullopt;
  }
  return builder.take();
}

}  // namespace clockwise::config
