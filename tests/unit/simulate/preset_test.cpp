#include "simulate/preset.h"

#include <gmock/gmock.h>

#include "unit/simulate/support.h"

namespace clockwise::simulate {
namespace {

using testing::EndsWith;
using testing::StartsWith;

std::string text_of(std::string_view name) {
  for (const Preset& preset : presets()) {
    if (preset.name != name) continue;
    const KeySeries series = KeySeries::parse(preset.key_format, kPresetKeys).value();
    std::vector<Row> rows;
    for (const Trial& trial : preset.trials())
      rows.push_back(run(trial, series, [](std::uint64_t) {}).value());
    return preset.text(rows);
  }
  return {};
}

TEST(Preset, Sha256ReproducesItsArticle) {
  EXPECT_EQ(text_of("sha256-3to4"),
            "modulo changed=74934 A=24841 B=24912 C=25394 D=24853\n"
            "1 token changed=6166 A=71518 B=16010 C=6306 D=6166\n"
            "128 tokens changed=26510 A=23047 B=25048 C=25395 D=26510\n");
}

TEST(Preset, Sha1ReproducesItsArticle) {
  EXPECT_EQ(text_of("sha1-4to5"),
            "moved share: modulo 0.79931, ring 0.2166, all to e\n"
            "1 token a=31181 b=12292 c=4595 d=51932\n"
            "150 tokens a=24708 b=23553 c=24735 d=27004\n");
}

TEST(Preset, SiphashReproducesItsArticle) {
  const std::string text = text_of("siphash-4to5");
  EXPECT_THAT(text, StartsWith("modulo moved 79759, load "));  // its loads were not published
  EXPECT_THAT(text, EndsWith("\n1 token moved 21811, load 9435 12964 30800 24990 21811\n"
                             "10 tokens moved 21213, load 15269 20689 24837 17992 21213\n"
                             "50 tokens moved 17352, load 24833 22778 19146 15891 17352\n"
                             "100 tokens moved 19195, load 21347 19633 21701 18124 19195\n"
                             "200 tokens moved 19377, load 17961 19792 21131 21739 19377\n"
                             "500 tokens moved 19911, load 19831 20705 19780 19773 19911\n"));
}

}  // namespace
}  // namespace clockwise::simulate
