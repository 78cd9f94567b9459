// `clockwise import FILE`: the pools of another program as a configuration, and the proof that each
// key stays where it is.
//
// The YAML goes to standard output, everything else to standard error, so that `> clockwise.yaml`
// keeps the one and shows the other.
#include "import/import.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "import/prove.h"
#include "import/write.h"

namespace clockwise::cli {
namespace {

constexpr std::string_view kCommand = "import";

void print(const std::vector<config::Problem>& problems) {
  for (const config::Problem& problem : problems) fmt::print(stderr, "{}\n", problem.text());
}

// The format asked for, else the one that the file looks like.
std::optional<importer::Format> choose_format(const ImportOptions& options, std::string_view text) {
  if (!options.from.empty()) return importer::format_named(options.from);
  const std::optional<importer::Guess> guess = importer::guess_format(options.file, text);
  if (!guess) {
    complain(kCommand, fmt::format("{} looks like no format that is known; name it with --from {}",
                                   options.file, fmt::join(importer::format_names(), ", ")));
    return std::nullopt;
  }
  fmt::print(stderr, "{} is read as {}'s: {} says so (--from chooses another)\n", options.file,
             importer::to_string(guess->format), guess->because);
  return guess->format;
}

// What this release would refuse of the file that was written: it may know less than the source,
// which is no fault of its author.
void print_refusals(const importer::Import& import, const std::string& yaml) {
  const config::FileReader read = [&](const std::string&) {
    return std::variant<std::string, std::string>(std::in_place_index<0>, yaml);
  };
  const config::LoadResult result = config::load("the YAML", read, config::real_environment());
  const auto* failure = std::get_if<config::Failure>(&result);
  if (failure == nullptr) return;
  fmt::print(stderr, "{} is taken over, but this release refuses the YAML as it stands:\n",
             import.file);
  for (const config::Problem& problem : failure->problems)
    fmt::print(stderr, "  line {}: {}\n", problem.position.line, problem.message);
}

// True when no key moves.
bool print_proof(const importer::Import& import, const std::vector<importer::PoolProof>& proofs) {
  bool kept = true;
  for (const importer::PoolProof& proof : proofs) {
    kept = kept && proof.kept && proof.differences == 0;
    const std::string where = fmt::format("{}: pool {}", import.file, proof.pool);
    if (!proof.why_not.empty())
      fmt::print(stderr, "{}: {}\n", where, proof.why_not);
    else
      fmt::print(stderr, "{}: {} differences over {} keys\n", where, proof.differences, proof.keys);
    if (proof.differences > 0)
      fmt::print(stderr, "  the first: {} is on {} there, on {} here\n", proof.first.key,
                 proof.first.source, proof.first.here);
  }
  return kept;
}

int prove(const importer::Import& import, std::uint64_t keys) {
  Progress progress("comparing keys", keys * import.pools.size());
  const importer::Proof proof =
      importer::prove(import, keys, [&](std::uint64_t done) { progress.update(done); });
  if (const auto* failure = std::get_if<config::Failure>(&proof)) {
    report(*failure);
    return complain(kCommand, "the rings that were written cannot be built, nothing is proved");
  }
  return print_proof(import, std::get<std::vector<importer::PoolProof>>(proof)) ? kOk : kError;
}

int write(const importer::Import& import, std::uint64_t keys) {
  const std::string yaml = importer::to_yaml(import);
  Output output;
  output.append(yaml);
  if (const auto done = output.flush(); !done) return complain(kCommand, done.error().message);
  for (const importer::Note& note : import.notes) fmt::print(stderr, "{}\n", note.text());
  print_refusals(import, yaml);
  return keys == 0 ? kOk : prove(import, keys);
}

}  // namespace

int import_pools(const ImportOptions& options) {
  auto bytes = config::real_files()(options.file);
  if (const auto* reason = std::get_if<1>(&bytes))
    return complain(kCommand, fmt::format("{} cannot be read: {}", options.file, *reason));
  auto decoded = config::Source::decode(options.file, std::get<0>(std::move(bytes)));
  if (const auto* problem = std::get_if<config::Problem>(&decoded)) {
    print({*problem});
    return kError;
  }
  const auto& source = std::get<config::Source>(decoded);
  const std::optional<importer::Format> format = choose_format(options, source.text());
  if (!format) return kError;
  const importer::Outcome outcome = importer::read(*format, source, importer::real_files());
  if (const auto* problems = std::get_if<importer::Problems>(&outcome)) {
    print(*problems);
    return kError;
  }
  return write(std::get<importer::Import>(outcome), options.prove);
}

}  // namespace clockwise::cli
