#include "config/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

using Labels = std::vector<std::vector<std::string>>;
using Ids = std::vector<std::vector<std::int64_t>>;

Tokens bytes_of(std::vector<std::string> texts) {
  return tokenize({std::move(texts), std::nullopt, Tokenizer::kBytes});
}
Tokens words_of(std::vector<std::string> texts) {
  return tokenize({std::move(texts), std::nullopt, Tokenizer::kWords});
}

std::string error_of(Tokenizer tokenizer, std::vector<std::string> texts) {
  try {
    tokenize({std::move(texts), std::nullopt, tokenizer});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ByteTokenizer, AByteIsATokenAndItsValueTheId) {
  const Tokens tokens = bytes_of({"Hi!"});
  EXPECT_EQ(tokens.ids, (Ids{{72, 105, 33}}));
  EXPECT_EQ(tokens.labels, (Labels{{"H", "i", "!"}}));
  EXPECT_EQ(tokens.vocab_size, 256);
}

TEST(ByteTokenizer, ShowsSpacesAndControlBytes) {
  const Tokens tokens = bytes_of({std::string("a \t\n\r\x1b\x7f\0", 8)});
  EXPECT_EQ(tokens.labels, (Labels{{"a", "<sp>", "<tab>", "<nl>", "<cr>", "<0x1b>", "<0x7f>", "<0x00>"}}));
}

TEST(ByteTokenizer, NumbersTheBytesOfALongerCharacter) {
  const Tokens tokens = bytes_of({"é€😀"});
  EXPECT_EQ(tokens.ids, (Ids{{0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80}}));
  EXPECT_EQ(tokens.labels, (Labels{{"é1", "é2", "€1", "€2", "€3", "😀1", "😀2", "😀3", "😀4"}}));
}

TEST(ByteTokenizer, NamesCharactersThatHaveNoInk) {
  EXPECT_EQ(bytes_of({"\xc2\xa0"}).labels, (Labels{{"<U+00A0>1", "<U+00A0>2"}}));
  EXPECT_EQ(bytes_of({"\xe2\x80\xae"}).labels, (Labels{{"<U+202E>1", "<U+202E>2", "<U+202E>3"}}));
}

TEST(WordTokenizer, SplitsAtSpacesAndPunctuation) {
  const Tokens tokens = words_of({"The cat, the  hat: it's 42\t!?"});
  EXPECT_EQ(tokens.labels, (Labels{{"The", "cat", ",", "the", "hat", ":", "it", "'", "s", "42", "!", "?"}}));
}

TEST(WordTokenizer, NumbersWordsByFirstAppearanceOverAllTexts) {
  const Tokens tokens = words_of({"b a b", "a c b"});
  EXPECT_EQ(tokens.ids, (Ids{{0, 1, 0}, {1, 2, 0}}));
  EXPECT_EQ(tokens.vocab_size, 3);
}

TEST(WordTokenizer, KeepsNonAsciiLettersInsideAWordAndSplitsAtUnicodeSpaces) {
  EXPECT_EQ(words_of({"naïve\xc2\xa0Žižek\xe3\x80\x80東京"}).labels, (Labels{{"naïve", "Žižek", "東京"}}));
}

TEST(WordTokenizer, DropsControlCharactersAndAByteOrderMark) {
  EXPECT_EQ(words_of({"\xef\xbb\xbfone\x01two\x7f"}).labels, (Labels{{"one", "two"}}));
}

TEST(Tokenizer, RefusesTextsWithoutTokens) {
  EXPECT_EQ(error_of(Tokenizer::kBytes, {}), "text: must have at least one item, got none");
  EXPECT_EQ(error_of(Tokenizer::kBytes, {"a", ""}), "text 2: must have at least one character, got an empty text");
  EXPECT_EQ(error_of(Tokenizer::kWords, {" \t"}), R"(text 1: must have at least one word, got " \t")");
  EXPECT_EQ(error_of(Tokenizer::kBytes, {" "}), "accepted");
}

TEST(Tokenizer, RefusesInvalidUtf8AndSaysWhere) {
  EXPECT_EQ(error_of(Tokenizer::kBytes, {"ab\xff"}), "text 1: must be UTF-8, got an invalid byte at offset 2");
  EXPECT_EQ(error_of(Tokenizer::kWords, {"\xc3"}), "text 1: must be UTF-8, got an invalid byte at offset 0");
}

std::string random_text() {
  static const std::vector<std::string> kPieces{"a", "B7", " ", "\n", "é", "€", "😀", ".", "\x02", "\xc2\xa0", "word"};
  std::string text;
  for (const auto piece :
       *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, kPieces.size()))) {
    text += kPieces[piece];
  }
  return text;
}

RC_GTEST_PROP(ByteTokenizer, IdsAreTheTextAgain, ()) {
  const std::string text = random_text();
  RC_PRE(!text.empty());
  const Tokens tokens = bytes_of({text});
  std::string again;
  for (const std::int64_t id : tokens.ids[0]) again += static_cast<char>(id);
  RC_ASSERT(again == text);
}

RC_GTEST_PROP(Tokenizer, EveryLabelIsPrintableAndEveryIdInTheVocabulary, ()) {
  const std::string text = random_text();
  const auto tokenizer = *rc::gen::element(Tokenizer::kBytes, Tokenizer::kWords);
  if (text_fault(text, tokenizer)) return;
  const Tokens tokens = tokenize({{text}, std::nullopt, tokenizer});
  RC_ASSERT(tokens.labels[0].size() == tokens.ids[0].size());
  for (const std::string& label : tokens.labels[0]) {
    RC_ASSERT(!label.empty());
    RC_ASSERT(!find_invalid_utf8(label));
    RC_ASSERT(printable(label) == label);
  }
  for (const std::int64_t id : tokens.ids[0]) RC_ASSERT(id >= 0 && id < tokens.vocab_size);
}

RC_GTEST_PROP(WordTokenizer, EqualLabelsHaveEqualIdsAndOnlyThey, ()) {
  const std::string text = random_text();
  if (text_fault(text, Tokenizer::kWords)) return;
  const Tokens tokens = words_of({text});
  for (std::size_t i = 0; i < tokens.ids[0].size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      RC_ASSERT((tokens.ids[0][i] == tokens.ids[0][j]) == (tokens.labels[0][i] == tokens.labels[0][j]));
    }
  }
}

}  // namespace
}  // namespace attn
