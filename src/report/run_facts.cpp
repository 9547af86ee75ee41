#include "report/run_facts.h"

#include <ostream>
#include <variant>

#include "core/text.h"

namespace attn {
namespace {

struct InputWords {
  std::string operator()(const RandomInput&) const { return "random"; }
  std::string operator()(const TensorInput& input) const {
    return "tensor " + in_quotes(input.name) + " of " + printable(input.file.filename().string());
  }
  std::string operator()(const TokensInput&) const { return "token ids"; }
  std::string operator()(const TextInput& input) const {
    return "text, tokenized by " + to_string(input.tokenizer) +
           (input.file ? ", from " + printable(input.file->filename().string()) : "");
  }
};

}  // namespace

std::string layer_facts(const AttentionConfig& config) {
  std::string facts = to_string(config.module) + ", qkv " + to_string(config.qkv) +
                      (config.bias ? ", bias" : ", no bias") + (config.causal ? ", causal" : ", not causal");
  if (config.dropout > 0.0) facts += ", dropout " + format_number(config.dropout);
  return facts;
}

std::string shape_facts(const RunConfig& config) {
  const AttentionConfig& layer = config.attention;
  return "B " + std::to_string(config.B) + ", T " + std::to_string(config.T) + ", d_model " +
         std::to_string(layer.d_model) + ", H " + std::to_string(layer.H) + ", d_k " + std::to_string(layer.d_k());
}

std::string input_facts(const RunConfig& config) {
  std::string facts = std::visit(InputWords{}, config.input);
  if (config.embedding) {
    facts += "; embedding of " + std::to_string(config.embedding->vocab_size) + " tokens, positions " +
             to_string(config.embedding->positions);
  }
  return facts;
}

void write_run_facts(std::ostream& out, std::string_view what, const RunConfig& config, int threads,
                     const std::string& torch_version, bool color, const std::vector<RunFact>& more) {
  const std::string weights =
      config.weights ? "from " + printable(config.weights->filename().string()) : "drawn from the seed";
  out << heading(std::string(what), color) << " of " << printable(config.source_name) << "\n\n"
      << "  layer    " << layer_facts(config.attention) << '\n'
      << "  shape    " << shape_facts(config) << '\n'
      << "  input    " << input_facts(config) << '\n'
      << "  run      " << config.device << ", " << to_string(config.dtype) << ", seed " << config.seed << ", "
      << threads << (threads == 1 ? " thread" : " threads") << ", LibTorch " << torch_version << '\n'
      << "  weights  " << weights << '\n';
  for (const RunFact& fact : more) out << "  " << padded(fact.name, 7) << "  " << printable(fact.words) << '\n';
  out << '\n';
}

std::string heading(const std::string& text, bool color) { return color ? "\x1b[1m" + text + "\x1b[0m" : text; }

}  // namespace attn
