// A trace for people: a line a step, so that a shape that went wrong is seen where it went wrong.
#include <algorithm>
#include <ostream>
#include <string_view>

#include "core/text.h"
#include "report/feature_facts.h"
#include "report/run_facts.h"
#include "report/table.h"
#include "report/text_report.h"
#include "report/values_text.h"
#include "trace/symbolic_shapes.h"

namespace attn {
namespace {

std::string number_or_empty(const std::optional<double>& value, int digits) {
  return value ? format_number(*value, digits) : "";
}

std::string count_or_empty(std::int64_t count) {
  return count == 0 ? "" : format_count(static_cast<std::uint64_t>(count));
}

/// Columns that say the same in every row are left empty, and so are not printed.
std::vector<TableColumn> step_columns(const std::vector<const TraceStep*>& steps, const std::string& usual_dtype,
                                      int digits) {
  std::vector<TableColumn> columns = {{"step", false, {}},  {"shape", false, {}}, {"numbers", false, {}},
                                      {"dtype", false, {}}, {"bytes", true, {}},  {"min", true, {}},
                                      {"max", true, {}},    {"mean", true, {}},   {"std", true, {}},
                                      {"nan", true, {}},    {"inf", true, {}}};
  const auto is_usual = [&](const TraceStep* step) { return step->dtype == usual_dtype; };
  const bool all_usual = std::all_of(steps.begin(), steps.end(), is_usual);
  for (const TraceStep* step : steps) {
    const std::string cells[] = {printable(step->name),
                                 step->symbolic,
                                 format_shape(step->shape) + (step->contiguous ? "" : "*"),
                                 all_usual ? "" : step->dtype,
                                 format_bytes(static_cast<std::uint64_t>(step->bytes)),
                                 number_or_empty(step->stats.min, digits),
                                 number_or_empty(step->stats.max, digits),
                                 number_or_empty(step->stats.mean, digits),
                                 number_or_empty(step->stats.std, digits),
                                 count_or_empty(step->stats.nan),
                                 count_or_empty(step->stats.inf)};
    for (std::size_t column = 0; column < columns.size(); ++column) columns[column].cells.push_back(cells[column]);
  }
  return columns;
}

/// Four significant digits where they fit, else fewer.
void write_steps(std::ostream& out, const std::vector<const TraceStep*>& steps, const std::string& usual_dtype) {
  int digits = 4;
  std::vector<TableColumn> columns = step_columns(steps, usual_dtype, digits);
  while (table_width(columns) > kTextWidth && digits > 1) columns = step_columns(steps, usual_dtype, --digits);
  write_table(out, columns);
  const bool contiguous =
      std::all_of(steps.begin(), steps.end(), [](const TraceStep* step) { return step->contiguous; });
  out << (contiguous ? "  all contiguous\n\n" : "  * not contiguous\n\n");
}

/// "1.12 KiB each, 5 of them above".
std::string attention_words(const AttentionTrace& trace) {
  const std::string count = format_count(static_cast<std::uint64_t>(trace.summary.attention_tensors));
  return format_bytes(static_cast<std::uint64_t>(trace.summary.attention_bytes)) +
         (trace.calls.size() > 1
              ? " the largest, " + count + " of them in " + std::to_string(trace.calls.size()) + " calls"
              : " each, " + count + " of them above");
}

void write_summary(std::ostream& out, const AttentionTrace& trace, bool has_backward, const TextOptions& options) {
  const TraceSummary& summary = trace.summary;
  const auto count = [](std::int64_t number) { return format_count(static_cast<std::uint64_t>(number)); };
  const auto bytes = [](std::int64_t number) { return format_bytes(static_cast<std::uint64_t>(number)); };

  std::vector<RunFact> facts = {
      {"parameters", count(summary.parameters)},
      {"forward", count(summary.forward_flops) + " FLOPs of matrix products (a multiply-add is 2)"}};
  if (has_backward) facts.push_back({"backward", count(summary.backward_flops) + " FLOPs of matrix products"});
  if (summary.attention_tensors > 0) {
    facts.push_back({symbolic_shape(Step::kWeights, letters_of(trace.config)), attention_words(trace)});
  }
  if (summary.mask_bytes > 0) facts.push_back({"causal mask", bytes(summary.mask_bytes)});
  if (summary.built_mask_bytes > 0) {
    const std::string which = trace.calls.size() > 1 ? "the largest call" : "the call";
    facts.push_back({"mask", bytes(summary.built_mask_bytes) + " that " + which + " builds, for all heads"});
  }
  if (has_backward) facts.push_back({"loss", format_number(summary.loss, 6) + ", sum(output * dy)"});
  if (options.verbose) facts.push_back({"time", format_number(trace.seconds, 3) + " s"});

  constexpr std::size_t kLeastWidth = 12;  // "(B, H, T, T)"
  std::size_t width = kLeastWidth;
  for (const RunFact& fact : facts) width = std::max(width, fact.name.size());
  out << heading("summary", options.color) << "\n";
  for (const RunFact& fact : facts) out << "  " << padded(fact.name, width) << "  " << fact.words << '\n';
}

std::vector<const TraceStep*> steps_of_call(const AttentionTrace& trace, std::int64_t call) {
  std::vector<const TraceStep*> steps;
  for (const TraceStep& step : trace.steps) {
    if (step.pass == "forward" && step.call == call) steps.push_back(&step);
  }
  return steps;
}

/// The first call and the last in full; of those between only what write_calls() says.
bool is_shown(const AttentionTrace& trace, const TraceStep& step) {
  return trace.calls.empty() || step.call == 0 || step.call == trace.calls.back().call;
}

std::string position_words(const ForwardCall& call) {
  const std::string first = std::to_string(call.first_query);
  return call.queries == 1 ? first : first + "-" + std::to_string(call.first_query + call.queries - 1);
}

/// "call 3 in eval mode: T_q 1, T_k 7; query 0 sits at position 6, key 0 at 0".
void write_call(std::ostream& out, const AttentionTrace& trace, const ForwardCall& call, const TextOptions& options) {
  out << heading("forward", options.color) << " call " << call.call << " in " << to_string(trace.config.mode)
      << " mode: T_q " << call.queries << ", T_k " << call.keys << "; query 0 sits at position " << call.first_query
      << ", key 0 at " << call.first_key << '\n';
  write_steps(out, steps_of_call(trace, call.call), to_string(trace.config.dtype));
}

/// Of many calls the first and the last ones, and dots between them.
void write_calls_between(std::ostream& out, const AttentionTrace& trace, const TextOptions& options) {
  constexpr std::size_t kMostLines = 24, kAtEachEnd = 8;
  const std::size_t between = trace.calls.size() - 2;
  if (between == 0) return;
  const bool all = between <= kMostLines;
  std::vector<TableColumn> columns = {
      {"call", true, {}}, {"positions", true, {}}, {"T_q", true, {}}, {"T_k", true, {}}, {"kept", true, {}}};
  for (std::size_t index = 1; index <= between; ++index) {
    if (!all && index == kAtEachEnd + 1) {
      for (TableColumn& column : columns) column.cells.emplace_back("...");
      index = between - kAtEachEnd + 1;
    }
    const ForwardCall& call = trace.calls[index];
    const std::string cells[] = {std::to_string(call.call), position_words(call), std::to_string(call.queries),
                                 std::to_string(call.keys), format_bytes(static_cast<std::uint64_t>(call.cache_bytes))};
    for (std::size_t column = 0; column < columns.size(); ++column) columns[column].cells.push_back(cells[column]);
  }
  out << heading("forward", options.color) << (between == 1 ? " call 1" : " calls 1 to " + std::to_string(between))
      << (all ? ": a line each" : ": a line each for the first and the last") << ", --json holds every step\n";
  write_table(out, columns);
  out << '\n';
}

void write_calls(std::ostream& out, const AttentionTrace& trace, const TextOptions& options) {
  write_call(out, trace, trace.calls.front(), options);
  write_calls_between(out, trace, options);
  write_call(out, trace, trace.calls.back(), options);
  out << heading("backward", options.color) << ": none, a cache is for inference\n\n";
}

std::vector<const TraceStep*> backward_steps(const AttentionTrace& trace) {
  std::vector<const TraceStep*> steps;
  for (const TraceStep& step : trace.steps) {
    if (step.pass != "forward") steps.push_back(&step);
  }
  return steps;
}

std::vector<RunFact> more_facts(const AttentionTrace& trace) {
  std::vector<RunFact> all;
  for (const std::vector<RunFact>& facts : {mask_facts(trace.config), cache_facts(trace), engine_facts(trace)}) {
    all.insert(all.end(), facts.begin(), facts.end());
  }
  return all;
}

}  // namespace

void write_text(std::ostream& out, const AttentionTrace& trace, const TextOptions& options) {
  const std::string usual_dtype = to_string(trace.config.dtype);
  const std::vector<const TraceStep*> backward = backward_steps(trace);

  write_run_facts(out, "trace", trace.config, trace.threads, trace.torch_version, options.color, more_facts(trace));
  if (trace.calls.size() > 1) {
    write_calls(out, trace, options);
  } else {
    out << heading("forward", options.color) << " in " << to_string(trace.config.mode) << " mode\n";
    write_steps(out, steps_of_call(trace, 0), usual_dtype);
  }
  if (!backward.empty()) {
    out << heading("backward", options.color)
        << ": gradients of steps and parameters, in the order in which they arise\n";
    write_steps(out, backward, usual_dtype);
  }
  if (options.values) {
    out << heading("values", options.color) << " of small tensors\n\n";
    for (const TraceStep& step : trace.steps) {
      if (is_shown(trace, step)) write_values(out, step, value_places(trace, step));
    }
  }
  write_summary(out, trace, !backward.empty(), options);
}

}  // namespace attn
