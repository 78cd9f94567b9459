#include "config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <exception>
#include <sstream>
#include <unordered_map>

namespace clockwise::config {
namespace {

// Thrown through the library's parser, caught in parse_yaml().
struct Stop : std::exception {
  Stop(Place at, std::string text) : place(at), message(std::move(text)) {}
  Place place;
  std::string message;
};

// True when the quoted text that starts here has its closing quote: yaml-cpp takes the end of the
// file for one.
bool is_closed(std::string_view quoted) {
  const char quote = quoted.front();
  for (std::size_t at = 1; at < quoted.size(); ++at) {
    if (quote == '"' && quoted[at] == '\\') {
      ++at;
    } else if (quoted[at] == quote) {
      const bool escaped = quote == '\'' && quoted.substr(at + 1, 1) == "'";
      if (!escaped) return true;
      ++at;
    }
  }
  return false;
}

// The library takes the next token as the place of a value that is not there.
bool is_null_word(std::string_view text) {
  return text.starts_with('~') || text.starts_with("null") || text.starts_with("Null") ||
         text.starts_with("NULL");
}

constexpr std::string_view kNeverClosed = "is never closed; is the file cut off?";

// Builds the tree from the parser's events.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const Source& source, Report& report) : source_(source), report_(report) {}

  Document take() { return std::move(document_); }
  [[nodiscard]] bool has_document() const noexcept { return document_.root != nullptr; }
  [[nodiscard]] bool is_empty() const noexcept {
    return !has_document() || document_.root->kind == Kind::null;
  }

  // What the library said, in words that lead to the place to mend.
  [[nodiscard]] Stop explain(const YAML::Exception& error) const;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (!has_document()) return;
    const Place place = place_of(mark);
    const bool marked = source_.from({place.line, 1}).starts_with("---") ||
                        source_.from({place.line - 1, 1}).starts_with("...");
    throw Stop(place, marked ? "a second document starts here; a configuration is one document"
                             : "does not belong to what stands above; check the indentation");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Place place = skip_properties(place_of(mark));
    const bool written = is_null_word(source_.from(place)) && place.line == last_.line;
    Node& node = add(Kind::null, written ? place : dash_before(place), anchor);
    node.written = written;
    attach(node);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Place place = place_of(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Stop(place, "this alias stands inside what it names");
    if (expects_key()) throw Stop(place, "a key must be plain text, not an alias");
    // Shared, not copied; but whoever walks the tree passes it once more.
    count(sizes_.at(found->second), place);
    attach(*found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const Place place = skip_properties(place_of(mark));
    check_tag(tag, place);
    const char first = source_.from(place).empty() ? ' ' : source_.from(place).front();
    if ((first == '"' || first == '\'') && !is_closed(source_.from(place)))
      throw Stop(place, fmt::format("the text that starts with {} {}", first, kNeverClosed));
    if (expects_key()) {
      open_.back().key = Entry{value, place, nullptr};
      last_ = place;
      return;
    }
    Node& node = add(Kind::scalar, place, anchor);
    node.text = value;
    node.quoted = first == '"' || first == '\'' || first == '|' || first == '>';
    attach(node);
  }

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

  [[nodiscard]] Place place_of(const YAML::Mark& mark) const {
    if (mark.line < 0 || mark.column < 0) return source_.end();
    return source_.place_of_byte(static_cast<std::size_t>(mark.line),
                                 static_cast<std::size_t>(mark.column));
  }

 private:
  struct Open {
    Node* node;
    YAML::anchor_t anchor;
    bool flow;
    std::size_t nodes_before;
    std::optional<Entry> key;  // of a map: read, its value not yet
  };

  [[nodiscard]] bool expects_key() const noexcept {
    return !open_.empty() && open_.back().node->kind == Kind::map && !open_.back().key;
  }

  // A list cut before its `]` reads as one whose last item is a key.
  [[nodiscard]] Stop odd_key(Place place) const {
    const bool cut =
        open_.size() > 1 && open_[open_.size() - 2].flow && open_.back().node->place == place;
    if (!cut) return {place, "a key must be plain text"};
    return {open_[open_.size() - 2].node->place, fmt::format("the [ {}", kNeverClosed)};
  }

  void count(std::size_t nodes, Place place) {
    total_ += nodes;
    if (total_ > kMaxNodes)
      throw Stop(place, fmt::format("more than {} values, aliases counted", kMaxNodes));
  }

  Node& add(Kind kind, Place place, YAML::anchor_t anchor) {
    if (expects_key()) throw odd_key(place);
    count(1, place);
    Node& node = document_.nodes.emplace_back();
    node.kind = kind;
    node.place = place;
    last_ = place;
    if (anchor != 0 && kind != Kind::map && kind != Kind::sequence) name(anchor, node, 1);
    return node;
  }

  void name(YAML::anchor_t anchor, const Node& node, std::size_t size) {
    anchors_[anchor] = &node;
    sizes_[&node] = size;
  }

  void attach(const Node& node) {
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

  void begin(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YAML::EmitterStyle::value style) {
    const Place place = skip_properties(place_of(mark));
    check_tag(tag, place);
    if (open_.size() >= kMaxDepth)
      throw Stop(place, fmt::format("nested deeper than {} levels", kMaxDepth));
    const std::size_t before = total_;
    Node& node = add(kind, place, anchor);
    open_.push_back({&node, anchor, style == YAML::EmitterStyle::Flow, before, std::nullopt});
  }

  void end() {
    const Open closed = std::move(open_.back());
    open_.pop_back();
    if (closed.anchor != 0) name(closed.anchor, *closed.node, total_ - closed.nodes_before);
    attach(*closed.node);
  }

  void check_tag(const std::string& tag, Place place) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    report_.error(source_.problem(
        place, fmt::format("the tag {} is not supported: write the plain value", tag)));
  }

  // Where an item of a list stands whose value is not there.
  [[nodiscard]] Place dash_before(Place place) const {
    const std::size_t first = source_.text().size() - source_.from(last_).size();
    const std::size_t end = source_.text().size() - source_.from(place).size();
    std::string_view between(source_.text());
    between = between.substr(first, end > first ? end - first : 0);
    while (!between.empty()) {
      const std::size_t line = between.rfind('\n') + 1;  // 0 without a line break
      const std::size_t word = between.find_first_not_of(" \t", line);
      if (word != std::string_view::npos && between[word] == '-')
        return source_.place_of(first + word);
      between = between.substr(0, line == 0 ? 0 : line - 1);
    }
    return place;
  }

  // Anchors and tags stand before the value; messages point at the value.
  [[nodiscard]] Place skip_properties(Place place) const {
    std::string_view rest = source_.from(place);
    if (!rest.starts_with('&') && !rest.starts_with('!')) return place;
    while (rest.starts_with('&') || rest.starts_with('!')) {
      const std::size_t word = std::min(rest.find_first_of(" \t\r\n,]}"), rest.size());
      rest.remove_prefix(word);
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    }
    return source_.place_of(source_.text().size() - rest.size());
  }

  const Source& source_;
  Report& report_;
  Document document_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, const Node*> anchors_;
  std::unordered_map<const Node*, std::size_t> sizes_;  // of anchored nodes, aliases expanded
  std::size_t total_ = 0;
  Place last_;  // of the newest key or value
};

Stop Builder::explain(const YAML::Exception& error) const {
  namespace Said = YAML::ErrorMsg;
  Place place = place_of(error.mark);
  if (error.msg == Said::EOF_IN_SCALAR) {
    // The library points at the end; the quote that opened the text is the one after the last
    // event.
    const std::string_view rest = source_.from(last_.line == 0 ? Place{1, 1} : last_);
    const std::size_t quote = rest.find_first_of("\"'");
    if (quote != std::string_view::npos)
      place = source_.place_of(source_.text().size() - rest.size() + quote);
    return {place, fmt::format("the text in quotes {}", kNeverClosed)};
  }
  if (!open_.empty() && open_.back().flow &&
      (error.msg == Said::END_OF_MAP_FLOW || error.msg == Said::END_OF_SEQ_FLOW)) {
    const Node& opened = *open_.back().node;
    const char bracket = opened.kind == Kind::map ? '{' : '[';
    if (place <= opened.place || place >= source_.end())
      return {opened.place, fmt::format("the {} {}", bracket, kNeverClosed)};
    return {place,
            fmt::format("the {} of line {} is not closed before this", bracket, opened.place.line)};
  }
  const std::string_view line = source_.from({place.line, 1});
  const std::size_t indentation = line.find_first_not_of(" ");
  if (indentation != std::string_view::npos && line[indentation] == '\t')
    return {{place.line, static_cast<std::uint32_t>(indentation + 1)},
            "a tab in the indentation: use spaces"};
  if (error.msg == Said::UNKNOWN_ANCHOR) return {place, "this alias names no anchor above it"};
  if (error.msg == Said::END_OF_MAP || error.msg == Said::END_OF_SEQ)
    return {place, "not valid YAML here; check the indentation, quotes and colons above"};
  if (error.msg == Said::MAP_VALUE)
    return {place, "a colon is not possible here; quote the text, or check the line above"};
  if (error.msg == Said::BAD_FILE) return {place, "not valid YAML: nested too deeply"};
  return {place, "not valid YAML: " + error.msg};
}

void parse_into(Builder& builder, const Source& source) {
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
