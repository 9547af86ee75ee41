// A trace for people: a line a step, so that a shape that went wrong is seen where it went wrong.
#include <algorithm>
#include <ostream>
#include <string_view>

#include "core/text.h"
#include "report/run_facts.h"
#include "report/table.h"
#include "report/text_report.h"
#include "report/values_text.h"

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

void write_summary(std::ostream& out, const AttentionTrace& trace, bool has_backward, const TextOptions& options) {
  const TraceSummary& summary = trace.summary;
  const auto count = [](std::int64_t number) { return format_count(static_cast<std::uint64_t>(number)); };
  const auto bytes = [](std::int64_t number) { return format_bytes(static_cast<std::uint64_t>(number)); };

  out << heading("summary", options.color) << "\n  parameters    " << count(summary.parameters) << '\n'
      << "  forward       " << count(summary.forward_flops) << " FLOPs of matrix products (a multiply-add is 2)\n";
  if (has_backward) out << "  backward      " << count(summary.backward_flops) << " FLOPs of matrix products\n";
  out << (trace.config.attention.module == ModuleKind::kSingleHead ? "  (B, T, T)     " : "  (B, H, T, T)  ")
      << bytes(summary.attention_bytes) << " each, " << count(summary.attention_tensors) << " of them above\n";
  if (summary.mask_bytes > 0) out << "  causal mask   " << bytes(summary.mask_bytes) << '\n';
  if (has_backward) out << "  loss          " << format_number(summary.loss, 6) << ", sum(output * dy)\n";
  if (options.verbose) out << "  time          " << format_number(trace.seconds, 3) << " s\n";
}

}  // namespace

void write_text(std::ostream& out, const AttentionTrace& trace, const TextOptions& options) {
  std::vector<const TraceStep*> forward;
  std::vector<const TraceStep*> backward;
  for (const TraceStep& step : trace.steps) (step.pass == "forward" ? forward : backward).push_back(&step);
  const std::string usual_dtype = to_string(trace.config.dtype);

  write_run_facts(out, "trace", trace.config, trace.threads, trace.torch_version, options.color);
  out << heading("forward", options.color) << " in " << to_string(trace.config.mode) << " mode\n";
  write_steps(out, forward, usual_dtype);
  if (!backward.empty()) {
    out << heading("backward", options.color)
        << ": gradients of steps and parameters, in the order in which they arise\n";
    write_steps(out, backward, usual_dtype);
  }
  if (options.values) {
    out << heading("values", options.color) << " of small tensors\n\n";
    for (const TraceStep& step : trace.steps) write_values(out, step, trace.token_labels);
  }
  write_summary(out, trace, !backward.empty(), options);
}

}  // namespace attn
