#include "files/safetensors.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "files/files_test_support.h"
#include "files/safetensors_test_support.h"

namespace attn {
namespace {

using test::file_with_header;
using test::parse_with_header;

const std::vector<std::string> kDtypes = {"F64", "F32", "F16", "BF16", "I64",     "I32",     "I16", "I8",
                                          "U64", "U32", "U16", "U8",   "F8_E4M3", "F8_E5M2", "BOOL"};

TEST(Safetensors, ReadsAFileMadeByHand) {
  const SafetensorsFile file = SafetensorsFile::parse(test::small_valid_file(), "w.safetensors");
  EXPECT_EQ(file.source_name(), "w.safetensors");
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"by", "hand"}}));
  ASSERT_EQ(file.entries().size(), 3u);

  const SafetensorsEntry* x = file.find("x");
  ASSERT_NE(x, nullptr);
  EXPECT_EQ(x->dtype, "F32");
  EXPECT_EQ(x->shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(x->bytes, "abcdefgh");
  EXPECT_EQ(file.find("none")->bytes, "");
  EXPECT_EQ(file.find("y")->shape, std::vector<std::int64_t>{});
  EXPECT_EQ(file.find("y")->bytes, "i");
  EXPECT_EQ(file.find("z"), nullptr);
  EXPECT_EQ(file.find("__metadata__"), nullptr);
}

TEST(Safetensors, EntriesComeInTheOrderOfTheirData) {
  const SafetensorsFile file = parse_with_header(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},
                            "b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})",
                                                 "bbbaa");
  EXPECT_EQ(file.entries()[0].name, "b");
  EXPECT_EQ(file.entries()[0].bytes, "bbb");
  EXPECT_EQ(file.entries()[1].bytes, "aa");
}

TEST(Safetensors, AFileMayHoldNoTensor) { EXPECT_TRUE(parse_with_header("{}", "").entries().empty()); }

TEST(Safetensors, EntriesStayValidWhenTheFileIsMoved) {
  SafetensorsFile first = SafetensorsFile::parse(test::small_valid_file(), "w.safetensors");
  const SafetensorsFile second = std::move(first);
  SafetensorsFile third = parse_with_header("{}", "");
  third = SafetensorsFile::parse(test::small_valid_file(), "w.safetensors");
  EXPECT_EQ(second.find("x")->bytes, "abcdefgh");
  EXPECT_EQ(third.find("y")->bytes, "i");
}

TEST(Safetensors, LoadsFromDisk) {
  const test::TemporaryFolder folder;
  test::put(folder.path("w.safetensors"), test::small_valid_file());
  const SafetensorsFile file = SafetensorsFile::load(folder.path("w.safetensors"));
  EXPECT_EQ(file.find("x")->bytes, "abcdefgh");
  EXPECT_EQ(file.source_name(), folder.path("w.safetensors").string());
}

TEST(Safetensors, KnowsTheSizeOfEveryDtype) {
  const std::map<std::string, std::int64_t> sizes = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},  {"I32", 4},     {"I16", 2},    {"I8", 1},
      {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  for (const auto& [dtype, size] : sizes) EXPECT_EQ(safetensors_element_size(dtype), size) << dtype;
  for (const char* dtype : {"", "f32", "F4", "F32 ", "C64", "float32"}) {
    EXPECT_EQ(safetensors_element_size(dtype), 0) << dtype;
  }
}

TEST(ToSafetensors, WritesTheBytesThatTheFormatSays) {
  const std::string written = to_safetensors({{"b", "U8", {2}, "BB"}, {"a", "BF16", {}, "aa"}}, {{"k", "v"}});
  const std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                             R"("a":{"dtype":"BF16","shape":[],"data_offsets":[2,4]}})";
  EXPECT_EQ(written, file_with_header(header + std::string((8 - header.size() % 8) % 8, ' '), "BBaa"));
}

TEST(ToSafetensors, WritesNoMetadataWhereThereIsNone) {
  EXPECT_EQ(to_safetensors({}, {}), file_with_header("{}      ", ""));
}

RC_GTEST_PROP(ToSafetensors, IsReadBackAsItWas, ()) {
  const auto names =
      *rc::gen::container<std::set<std::string>>(rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)));
  std::vector<std::string> data;
  std::vector<SafetensorsEntry> entries;
  data.reserve(names.size());
  for (const std::string& name : names) {
    SafetensorsEntry entry;
    entry.name = name;
    entry.dtype = *rc::gen::elementOf(kDtypes);
    entry.shape =
        *rc::gen::resize(4, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 4)));
    std::int64_t bytes = safetensors_element_size(entry.dtype);
    for (const std::int64_t size : entry.shape) bytes *= size;
    data.push_back(*rc::gen::container<std::string>(static_cast<std::size_t>(bytes), rc::gen::arbitrary<char>()));
    entry.bytes = data.back();
    entries.push_back(entry);
  }
  const std::map<std::string, std::string> metadata = {
      {"name", *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127))}};

  const std::string written = to_safetensors(entries, metadata);
  const SafetensorsFile file = SafetensorsFile::parse(written, "w.safetensors");
  RC_ASSERT(file.metadata() == metadata);
  RC_ASSERT(file.entries().size() == entries.size());
  for (const SafetensorsEntry& entry : entries) {
    const SafetensorsEntry* read = file.find(entry.name);
    RC_ASSERT(read != nullptr);
    RC_ASSERT(read->dtype == entry.dtype);
    RC_ASSERT(read->shape == entry.shape);
    RC_ASSERT(read->bytes == entry.bytes);
  }
  const std::string_view length_bytes = std::string_view(written).substr(0, 2);
  RC_ASSERT(static_cast<unsigned char>(length_bytes[0]) % 8 == 0);  // so the data starts at a multiple of 8
}

}  // namespace
}  // namespace attn
