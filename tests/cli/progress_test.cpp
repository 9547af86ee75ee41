#include "cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace attn {
namespace {

using std::chrono::milliseconds;

TEST(Progress, SaysNothingWhereThereIsNoTerminal) {
  std::ostringstream err;
  {
    const Progress progress(err, false, "waiting", milliseconds(0));
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, SaysNothingAboutQuickWork) {
  std::ostringstream err;
  { const Progress progress(err, true, "waiting"); }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, ShowsALineAndWipesItAway) {
  std::ostringstream err;
  {
    Progress progress(err, true, "waiting", milliseconds(50));
    progress.set("check causality (1 of 2)");
    std::this_thread::sleep_for(milliseconds(500));
  }
  EXPECT_NE(err.str().find("attn-cli: check causality (1 of 2), 0 s"), std::string::npos) << err.str();
  EXPECT_TRUE(err.str().ends_with("\r\x1b[K"));
  EXPECT_EQ(err.str().find('\n'), std::string::npos);
}

TEST(Progress, FitsIntoALineOfTheTerminal) {
  std::ostringstream err;
  {
    Progress progress(err, true, "check causality (1 of 2), run 1 of 2: " + std::string(500, 'x'),
                      std::chrono::milliseconds(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_NE(err.str().find("attn-cli: check causality (1 of 2), run 1"), std::string::npos) << err.str();
  EXPECT_NE(err.str().find("..., 0 s"), std::string::npos) << err.str();
  EXPECT_EQ(err.str().find(std::string(400, 'x')), std::string::npos);
}

}  // namespace
}  // namespace attn
