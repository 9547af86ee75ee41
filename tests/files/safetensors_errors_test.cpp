// Every way in which a .safetensors file, or what should become one, can be wrong: the text names the file and the
// tensor.
#include <gtest/gtest.h>

#include "core/error.h"
#include "files/files_test_support.h"
#include "files/safetensors_test_support.h"

namespace attn {
namespace {

std::string error_of_bytes(const std::string& bytes) {
  return test::error_of<IoError>([&] { SafetensorsFile::parse(bytes, "w.safetensors"); });
}

std::string error_of(std::string_view header, std::string_view data = "") {
  return error_of_bytes(test::file_with_header(header, data));
}

// Of a file whose one tensor "x" has this entry, with 8 bytes of data.
std::string error_of_entry(const std::string& entry) { return error_of("{\"x\":" + entry + "}", "12345678"); }

TEST(SafetensorsErrors, TheFilesOfTheseTestsAreOtherwiseValid) {
  EXPECT_EQ(error_of_bytes(test::small_valid_file()), "(nothing thrown)");
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "(nothing thrown)");
}

TEST(SafetensorsErrors, TooShort) {
  EXPECT_EQ(error_of_bytes(""), "w.safetensors: is 0 bytes long, too short for a .safetensors file");
  EXPECT_EQ(error_of_bytes("1234567"), "w.safetensors: is 7 bytes long, too short for a .safetensors file");
}

TEST(SafetensorsErrors, HeaderLongerThanTheFile) {
  EXPECT_EQ(error_of_bytes(std::string("\x03\0\0\0\0\0\0\0{}", 10)),
            "w.safetensors: is cut off: its header is 3 bytes long, and 2 are there");
}

TEST(SafetensorsErrors, HeaderLongerThanTheFormatAllows) {
  EXPECT_EQ(
      error_of_bytes("{\"json\": \"not safetensors\"}"),
      "w.safetensors: header of 4189032028364743291 bytes, expected at most 100000000; is it a .safetensors file?");
  EXPECT_EQ(error_of_bytes(std::string(8, '\xff')),
            "w.safetensors: header of 18446744073709551615 bytes, expected at "
            "most 100000000; is it a .safetensors file?");
}

TEST(SafetensorsErrors, HeaderIsNoJsonObject) {
  EXPECT_EQ(error_of(""), "w.safetensors: header does not begin with '{'");
  EXPECT_EQ(error_of("[]"), "w.safetensors: header does not begin with '{'");
  EXPECT_EQ(error_of(" {}"), "w.safetensors: header does not begin with '{'");
}

TEST(SafetensorsErrors, HeaderIsNoJson) {
  EXPECT_EQ(error_of("{\"x\":}"),
            "w.safetensors: header: line 1, column 6: syntax error while parsing value: "
            "unexpected '}'; expected '[', '{', or a literal");
  EXPECT_EQ(error_of("{\"\xff\":1}"), "w.safetensors: header: line 1, column 3: invalid UTF-8 \"\\xff\"");
  EXPECT_EQ(error_of("{}x"),
            "w.safetensors: header: line 1, column 3: syntax error while parsing value: invalid "
            "literal \"x\"; expected end of input");
}

TEST(SafetensorsErrors, DuplicateName) {
  EXPECT_EQ(error_of(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                     R"("x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                     "12"),
            "w.safetensors: header: line 1, column 54: duplicate key /x");
}

TEST(SafetensorsErrors, MetadataIsNoMapOfStrings) {
  EXPECT_EQ(error_of(R"({"__metadata__":[]})"), "w.safetensors: __metadata__ is no JSON object");
  EXPECT_EQ(error_of(R"({"__metadata__":{"a":"b","H":12}})"), "w.safetensors: __metadata__: \"H\" is no string");
}

TEST(SafetensorsErrors, EntryIsNoObject) {
  EXPECT_EQ(error_of_entry("17"),
            "w.safetensors: tensor \"x\": is no JSON object, expected dtype, shape and data_offsets");
}

TEST(SafetensorsErrors, UnknownField) {
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shap":[2],"data_offsets":[0,8]})"),
            "w.safetensors: tensor \"x\": unknown field \"shap\"; did you mean \"shape\"?");
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})"),
            "w.safetensors: tensor \"x\": unknown field \"more\"; known: dtype, shape, data_offsets");
}

TEST(SafetensorsErrors, MissingField) {
  EXPECT_EQ(error_of_entry(R"({"shape":[2],"data_offsets":[0,8]})"), "w.safetensors: tensor \"x\": dtype is missing");
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","data_offsets":[0,8]})"), "w.safetensors: tensor \"x\": shape is missing");
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shape":[2]})"), "w.safetensors: tensor \"x\": data_offsets is missing");
}

TEST(SafetensorsErrors, UnknownDtype) {
  EXPECT_EQ(
      error_of_entry(R"({"dtype":"F4","shape":[2],"data_offsets":[0,8]})"),
      "w.safetensors: tensor \"x\": unknown dtype \"F4\"; known: F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I64, I32, "
      "I16, I8, U64, U32, U16, U8, BOOL");
  EXPECT_EQ(error_of_entry(R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})"),
            "w.safetensors: tensor \"x\": dtype is no string");
}

TEST(SafetensorsErrors, ShapeIsNoListOfSizes) {
  const auto with_shape = [](const std::string& shape) {
    return error_of_entry("{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":[0,8]}");
  };
  EXPECT_EQ(with_shape("2"), "w.safetensors: tensor \"x\": shape is no array");
  EXPECT_EQ(with_shape("[-2]"), "w.safetensors: tensor \"x\": shape has \"-2\", expected a whole number of at least 0");
  EXPECT_EQ(with_shape("[2.0]"),
            "w.safetensors: tensor \"x\": shape has \"2.0\", expected a whole number of at least 0");
  EXPECT_EQ(with_shape("[9223372036854775808]"),
            "w.safetensors: tensor \"x\": shape has \"9223372036854775808\", expected a whole number of at least 0");
  EXPECT_EQ(with_shape("[true]"),
            "w.safetensors: tensor \"x\": shape has \"true\", expected a whole number of at least 0");
}

TEST(SafetensorsErrors, ShapeOverflows) {
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]})"),
            "w.safetensors: tensor \"x\": F32 of shape (4611686018427387904, 4) is larger than any file");
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
            "w.safetensors: tensor \"x\": F32 of shape (4294967296, 4294967296) is larger than any file");
}

TEST(SafetensorsErrors, AShapeWithoutElementsDoesNotOverflow) {
  EXPECT_EQ(error_of(R"({"x":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}})"),
            "(nothing thrown)");
}

TEST(SafetensorsErrors, OffsetsAreNoPairOfSizes) {
  const auto with_offsets = [](const std::string& offsets) {
    return error_of_entry("{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":" + offsets + "}");
  };
  const std::string no_pair = "w.safetensors: tensor \"x\": data_offsets is no array of two numbers";
  EXPECT_EQ(with_offsets("8"), no_pair);
  EXPECT_EQ(with_offsets("[0]"), no_pair);
  EXPECT_EQ(with_offsets("[0,8,8]"), no_pair);
  EXPECT_EQ(with_offsets("[-8,0]"),
            "w.safetensors: tensor \"x\": data_offsets has \"-8\", expected a whole number of at least 0");
  EXPECT_EQ(with_offsets("[0,8.5]"),
            "w.safetensors: tensor \"x\": data_offsets has \"8.5\", expected a whole number of at least 0");
  EXPECT_EQ(with_offsets("[8,0]"), "w.safetensors: tensor \"x\": data_offsets begin at 8, after their end 0");
}

TEST(SafetensorsErrors, SizeDisagreesWithTheShape) {
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
            "w.safetensors: tensor \"x\": F32 of shape (3) takes 12 bytes, got 8");
  EXPECT_EQ(error_of_entry(R"({"dtype":"F32","shape":[],"data_offsets":[0,8]})"),
            "w.safetensors: tensor \"x\": F32 of shape () takes 4 bytes, got 8");
}

TEST(SafetensorsErrors, DataIsCutOff) {
  EXPECT_EQ(error_of(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234567"),
            "w.safetensors: tensor \"x\": ends at byte 8 of 7 bytes of data; is the file cut off?");
  EXPECT_EQ(error_of(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]}})"),
            "w.safetensors: tensor \"x\": ends at byte 9223372036854775807 of 0 bytes of data; is the file cut off?");
}

TEST(SafetensorsErrors, TensorsOverlap) {
  EXPECT_EQ(error_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                     R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                     "1234"),
            "w.safetensors: tensor \"b\": begins at byte 2, inside the tensor before it, which ends at 3");
}

TEST(SafetensorsErrors, TensorsLeaveAGap) {
  EXPECT_EQ(error_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                     R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                     "1234"),
            "w.safetensors: tensor \"b\": begins at byte 2, and the bytes from 1 belong to no tensor");
  EXPECT_EQ(error_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"),
            "w.safetensors: tensor \"a\": begins at byte 1, and the bytes from 0 belong to no tensor");
}

TEST(SafetensorsErrors, BytesAfterTheLastTensor) {
  EXPECT_EQ(error_of(R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1234"),
            "w.safetensors: 3 bytes at its end belong to no tensor");
  EXPECT_EQ(error_of("{}", "1"), "w.safetensors: 1 bytes at its end belong to no tensor");
}

TEST(SafetensorsErrors, ATensorsNameCannotDisturbTheTerminal) {
  EXPECT_EQ(error_of(R"({"a\u001b[2J\n":17})"),
            "w.safetensors: tensor \"a\\x1b[2J\\n\": is no JSON object, expected dtype, shape and data_offsets");
}

TEST(SafetensorsErrors, FileOnDisk) {
  const auto error = [](const std::string& path) {
    return test::error_of<IoError>([&] { SafetensorsFile::load(path); });
  };
  EXPECT_EQ(error("no/such.safetensors"), "no/such.safetensors: cannot be read: No such file or directory");
  EXPECT_EQ(error(".."), "..: is a folder, expected a file");
  EXPECT_EQ(error("/dev/null"), "/dev/null: is 0 bytes long, too short for a .safetensors file");
}

TEST(ToSafetensorsErrors, NameTheTensor) {
  const auto error = [](const std::vector<SafetensorsEntry>& entries) {
    return test::error_of<IoError>([&] { to_safetensors(entries, {}); });
  };
  const std::string where = ".safetensors to be written: ";
  EXPECT_EQ(error({{"a", "U8", {1}, "1"}, {"a", "U8", {1}, "1"}}), where + "tensor \"a\": the name is given twice");
  EXPECT_EQ(error({{"__metadata__", "U8", {1}, "1"}}),
            where + "tensor \"__metadata__\": the name is reserved for the metadata");
  EXPECT_EQ(error({{"a", "U8", {2}, "1"}}), where + "tensor \"a\": U8 of shape (2) takes 2 bytes, got 1");
  EXPECT_EQ(error({{"a", "U8", {-1}, "1"}}), where + "tensor \"a\": negative size in shape (-1)");
  EXPECT_EQ(error({{"a", "I64", {std::int64_t{1} << 62}, ""}}),
            where + "tensor \"a\": I64 of shape (4611686018427387904) is larger than any file");
  EXPECT_EQ(error({{"\xff", "U8", {1}, "1"}}), where + "tensor name \"\\xff\" is not UTF-8");
  EXPECT_TRUE(error({{"a", "F12", {1}, "1"}}).starts_with(where + "tensor \"a\": unknown dtype \"F12\"; known: F64"));
  EXPECT_EQ(test::error_of<IoError>([] {
              to_safetensors({}, {{"k", "\xff"}});
            }),
            where + "metadata \"\\xff\" is not UTF-8");
}

}  // namespace
}  // namespace attn
