#include "files/strict_json.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "files/files_test_support.h"

namespace attn {
namespace {

using nlohmann::json;

json parse(std::string_view text) { return parse_strict_json(text, "c.json"); }
std::string error_of(std::string_view text) {
  return test::error_of<ConfigError>([&] { parse(text); });
}

TEST(StrictJson, ReadsEveryKindOfValue) {
  const json document = parse(R"( {"object": {}, "array": [1, -2, 2.5, 1e300], "text": "a\u00e9\n\ud83d\ude00",
                                   "yes": true, "no": false, "nothing": null, "": 0} )");
  const json expected = {{"object", json::object()},
                         {"array", {1, -2, 2.5, 1e300}},
                         {"text", "a\u00e9\n\U0001F600"},
                         {"yes", true},
                         {"no", false},
                         {"nothing", nullptr},
                         {"", 0}};
  EXPECT_EQ(document, expected);
}

TEST(StrictJson, ADocumentNeedNotBeAnObject) {
  EXPECT_EQ(parse("17"), json(17));
  EXPECT_EQ(parse("\"a\""), json("a"));
  EXPECT_EQ(parse("[]"), json::array());
}

TEST(StrictJson, KeepsIntegersAndFractionsApart) {
  EXPECT_TRUE(parse("4").is_number_integer());
  EXPECT_TRUE(parse("4.0").is_number_float());
  EXPECT_TRUE(parse("1e3").is_number_float());
}

TEST(StrictJson, KeepsIntegersUpTo64Bits) {
  EXPECT_EQ(parse("18446744073709551615").get<std::uint64_t>(), 18446744073709551615u);
  EXPECT_EQ(parse("-9223372036854775808").get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
}

TEST(StrictJson, RefusesIntegersBeyond64Bits) {
  EXPECT_EQ(error_of("{\"T\":\n 18446744073709551616}"),
            "c.json: line 2, column 2: integer 18446744073709551616 does not fit in 64 bits");
  EXPECT_EQ(error_of("-9223372036854775809"),
            "c.json: line 1, column 1: integer -9223372036854775809 does not fit in 64 bits");
  EXPECT_EQ(error_of(std::string(100, '9')),
            "c.json: line 1, column 1: integer " + std::string(40, '9') + "... does not fit in 64 bits");
}

TEST(StrictJson, RefusesNumbersBeyondDouble) {
  EXPECT_EQ(error_of("[1, 1e999]"), "c.json: line 1, column 5: number 1e999 does not fit in a double");
  EXPECT_EQ(error_of("-1e999"), "c.json: line 1, column 1: number -1e999 does not fit in a double");
}

TEST(StrictJson, RefusesADuplicateKey) {
  EXPECT_EQ(error_of("{\"T\": 1,\n  \"T\": 2}"), "c.json: line 2, column 3: duplicate key /T");
  EXPECT_EQ(error_of(R"({"":1,"":1})"), "c.json: line 1, column 7: duplicate key /");
}

TEST(StrictJson, SaysWhereADuplicateKeyIsNested) {
  EXPECT_EQ(error_of(R"({"b": [1, 2], "a": {"x": [[3, {"k": 1, "k": 2}]]}})"),
            "c.json: line 1, column 40: duplicate key /a/x/0/1/k");
  EXPECT_EQ(error_of(R"([[], {}, {"k": {"l": 1}, "k": 2}])"), "c.json: line 1, column 26: duplicate key /2/k");
  EXPECT_EQ(error_of(R"({"a": {"b": {}}, "a": 1})"), "c.json: line 1, column 18: duplicate key /a");
}

TEST(StrictJson, EscapesThePointerOfADuplicateKey) {
  EXPECT_EQ(error_of(R"({"a/b": {"c~d": 1, "c~d": 2}})"), "c.json: line 1, column 20: duplicate key /a~1b/c~0d");
}

TEST(StrictJson, FindsADuplicateKeyThatIsSpeltDifferently) {
  EXPECT_EQ(error_of(R"({"a": 1, "\u0061": 2})"), "c.json: line 1, column 10: duplicate key /a");
  EXPECT_EQ(error_of(R"({"\"\\": 1, "\"\\": 2})"), "c.json: line 1, column 13: duplicate key /\"\\");
}

TEST(StrictJson, AllowsTheSameKeyInDifferentObjects) {
  const json document = parse(R"({"a": {"k": 1}, "b": {"k": 2}, "k": [{"k": 3}, {"k": 4}]})");
  EXPECT_EQ(document["b"]["k"], 2);
  EXPECT_EQ(document["k"][1]["k"], 4);
}

TEST(StrictJson, RefusesDeepNesting) {
  const std::string allowed = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  EXPECT_EQ(error_of(allowed), "(nothing thrown)");
  EXPECT_EQ(error_of(std::string(kMaxJsonDepth + 1, '[')), "c.json: line 1, column 65: nested deeper than 64 levels");
  EXPECT_EQ(error_of(std::string(1'000'000, '[')), "c.json: line 1, column 65: nested deeper than 64 levels");
}

TEST(StrictJson, DepthIsHowDeepNotHowMany) {
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += "[],";
  EXPECT_EQ(parse(many + "{}]").size(), 1001u);
}

TEST(StrictJson, RefusesATextThatIsTooLarge) {
  EXPECT_EQ(error_of(std::string(kMaxJsonBytes + 1, ' ')), "c.json: 16.0 MiB of JSON, expected at most 16.0 MiB");
  EXPECT_EQ(test::error_of<ConfigError>([] { parse_strict_json("[1, 2]", "c.json", 5); }),
            "c.json: 6 B of JSON, expected at most 5 B");
  EXPECT_EQ(parse_strict_json("[1,2]", "c.json", 5).size(), 2u);
}

TEST(StrictJson, RefusesAByteOrderMark) {
  EXPECT_EQ(error_of("\xEF\xBB\xBF{}"),
            "c.json: line 1, column 1: starts with a byte order mark, expected UTF-8 without one");
}

TEST(StrictJson, RefusesInvalidUtf8) {
  EXPECT_EQ(error_of("{\"\u00e9\": \"a\xff\"}"), "c.json: line 1, column 9: invalid UTF-8 \"\\xff\"");
}

TEST(StrictJson, RefusesAZeroByteInsteadOfStoppingThere) {
  EXPECT_EQ(error_of(std::string_view("{}\0 garbage", 11)), "c.json: line 1, column 3: a zero byte, expected text");
}

TEST(StrictJson, RefusesAnEmptyText) {
  EXPECT_EQ(error_of(""), "c.json: is empty, expected JSON");
  EXPECT_EQ(error_of(" \r\n\t "), "c.json: is empty, expected JSON");
}

TEST(StrictJson, RefusesTextAfterTheEnd) {
  EXPECT_EQ(error_of("{} {}"),
            "c.json: line 1, column 4: syntax error while parsing value: unexpected '{'; expected end of input");
  EXPECT_EQ(error_of("[1,2] x"),
            "c.json: line 1, column 7: syntax error while parsing value: invalid literal \"x\"; "
            "expected end of input");
}

TEST(StrictJson, RefusesATextThatIsCutOff) {
  EXPECT_EQ(error_of("{\"a\":\n1"),
            "c.json: line 2, column 2: syntax error while parsing object: unexpected end of "
            "input; expected '}'");
  EXPECT_EQ(error_of("\"abc"),
            "c.json: line 1, column 5: syntax error while parsing value: invalid string: missing closing quote");
}

TEST(StrictJson, ShowsTheWholeWordThatIsNoLiteral) {
  const auto literal = [](const std::string& word) {
    return "c.json: line 1, column 7: syntax error while parsing value: invalid literal \"" + word + "\"";
  };
  for (const std::string word : {"NaN", "Infinity", "True", "nul", "+1", ".5"}) {
    EXPECT_EQ(error_of("{\"a\": " + word + "}"), literal(word));
  }
  EXPECT_NE(error_of("{\"a\": -Infinity}"), "(nothing thrown)");
}

TEST(StrictJson, RefusesWhatLenientReadersLetPass) {
  for (const char* text : {"{\"a\": 1,}",
                           "[1,]",
                           "// comment\n{}",
                           "{} /* comment */",
                           "{'a': 1}",
                           "{a: 1}",
                           "[01]",
                           "[1.]",
                           "[0x10]",
                           "[1 2]",
                           "{\"a\" 1}",
                           "\"a\nb\"",
                           "\"a\tb\"",
                           "\"\\x41\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "{1: 2}",
                           "[,1]",
                           "{,}",
                           "]"}) {
    const std::string message = error_of(text);
    EXPECT_TRUE(message.starts_with("c.json: line 1, column ")) << text << ": " << message;
    EXPECT_NE(message.find("syntax error"), std::string::npos) << text << ": " << message;
  }
}

TEST(StrictJson, MessagesAreOneShortLineInOurOwnWords) {
  for (const std::string& text : {std::string("{\"a\": \x01}"), "\"" + std::string(100'000, 'x'),
                                  "[" + std::string(100'000, 'x') + "]", std::string("{\"a\n\": 1}")}) {
    const std::string message = error_of(text);
    EXPECT_LT(message.size(), 200u);
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_EQ(message.find("json.exception"), std::string::npos);
    EXPECT_EQ(message.find("last read"), std::string::npos);
  }
}

TEST(StrictJson, EscapesTheNameOfTheSource) {
  EXPECT_EQ(test::error_of<ConfigError>([] { parse_strict_json("", "a\x1b[2Jb"); }),
            "a\\x1b[2Jb: is empty, expected JSON");
}

json arbitrary_json(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<std::uint64_t>();
    case 4:
      return *rc::gen::suchThat<double>([](double value) { return std::isfinite(value); });
    case 5:
      return *rc::gen::string<std::string>();
    case 6: {
      json array = json::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) array.push_back(arbitrary_json(depth - 1));
      return array;
    }
    default: {
      json object = json::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i)
        object[*rc::gen::string<std::string>()] = arbitrary_json(depth - 1);
      return object;
    }
  }
}

// Bytes that are no UTF-8 become the replacement character when they are written.
std::string text_of(const json& document, int indent) {
  return document.dump(indent, ' ', false, json::error_handler_t::replace);
}

RC_GTEST_PROP(StrictJson, ReadsAnyDocumentAsTheLenientReaderDoes, ()) {
  const std::string text = text_of(arbitrary_json(4), *rc::gen::inRange(-1, 3));
  RC_PRE(text.find('\0') == std::string::npos);
  RC_PRE(error_of(text).find("duplicate key") == std::string::npos);  // two keys replaced by the same
  RC_ASSERT(parse(text) == json::parse(text));
}

RC_GTEST_PROP(StrictJson, NeverThrowsAnythingElse, ()) {
  std::string text = text_of(arbitrary_json(3), 1);
  for (int i = *rc::gen::inRange(1, 4); i > 0 && !text.empty(); --i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    if (*rc::gen::arbitrary<bool>()) {
      text[at] = *rc::gen::elementOf(std::string("{}[]\",:\\0123456789.eE+-truefalsn \n\xff\x01"));
    } else {
      text.erase(at);
    }
  }
  try {
    const json document = parse(text);
    RC_ASSERT(document == json::parse(text));  // what passes is JSON for the lenient reader as well
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    RC_ASSERT(message.starts_with("c.json: "));
    RC_ASSERT(message.find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace attn
