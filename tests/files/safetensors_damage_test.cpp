// Damage of every kind to a valid file: it is read, and then says no more than it holds, or it is refused.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "files/safetensors_test_support.h"

namespace attn {
namespace {

// What a reader of the file would touch. The sanitizers watch.
std::size_t walk(const SafetensorsFile& file) {
  std::size_t total = 0;
  for (const SafetensorsEntry& entry : file.entries()) {
    std::size_t sum = 0;
    for (const char byte : entry.bytes) sum += static_cast<unsigned char>(byte);
    total += entry.bytes.size() + (sum & 0);
  }
  return total;
}

// True when it was read; every other exception than IoError ends the test.
bool is_read(const std::string& bytes) {
  try {
    const SafetensorsFile file = SafetensorsFile::parse(bytes, "w.safetensors");
    EXPECT_LE(walk(file), bytes.size());
    return true;
  } catch (const IoError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("w.safetensors: ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return false;
  }
}

TEST(DamagedSafetensors, IsRefusedWhereverItIsCutOff) {
  const std::string whole = test::small_valid_file();
  ASSERT_TRUE(is_read(whole));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(is_read(whole.substr(0, length))) << length;
  }
}

TEST(DamagedSafetensors, IsRefusedWithAnythingAfterItsEnd) { EXPECT_FALSE(is_read(test::small_valid_file() + "x")); }

TEST(DamagedSafetensors, AnyChangeOfOneByteIsReadOrRefused) {
  const std::string whole = test::small_valid_file();
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(value);
      refused += is_read(damaged) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 1000);  // names and data may be any; the rest may not
}

TEST(DamagedSafetensors, NoOtherLengthOfTheHeaderIsTaken) {
  const std::string whole = test::small_valid_file();
  for (int low = 0; low < 256; ++low) {
    for (int high = 0; high < 256; ++high) {
      std::string damaged = whole;
      damaged[0] = static_cast<char>(low);
      damaged[1] = static_cast<char>(high);
      if (is_read(damaged)) {
        EXPECT_EQ(damaged.substr(0, 2), whole.substr(0, 2));
      }
    }
  }
}

RC_GTEST_PROP(DamagedSafetensors, SeveralChangesAreReadOrRefused, ()) {
  std::string bytes = test::small_valid_file();
  const auto changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes; ++i) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
  }
  is_read(bytes);
}

RC_GTEST_PROP(DamagedSafetensors, ArbitraryBytesAreReadOrRefused, (const std::string& bytes)) { is_read(bytes); }

RC_GTEST_PROP(DamagedSafetensors, ArbitraryNumbersInAnEntryAreReadOrRefused,
              (std::int64_t size, std::int64_t begin, std::uint64_t end)) {
  const std::string header = "{\"x\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(size) + ",2],\"data_offsets\":[" +
                             std::to_string(begin) + "," + std::to_string(end) + "]}}";
  is_read(test::file_with_header(header, "12345678"));
}

}  // namespace
}  // namespace attn
