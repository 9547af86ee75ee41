#include "checks/guarded_subject.h"

#include <exception>
#include <string>
#include <utility>

#include "checks/reference/number_format.h"
#include "core/text.h"
#include "experiment/torch_guard.h"

namespace attn {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  return format_shape(tensor.sizes().vec()) + " " + number_name(tensor.scalar_type()) + " on " + tensor.device().str();
}

void require_output_like(const at::Tensor& output, const at::Tensor& x) {
  const bool alike = output.defined() && output.sizes() == x.sizes() && output.scalar_type() == x.scalar_type() &&
                     output.device() == x.device();
  if (!alike) throw SubjectFailure("output: expected what x is, " + describe(x) + ", got " + describe(output));
}

}  // namespace

void run_subject_code(const RunConfig& run, const std::function<void()>& code) {
  try {
    with_torch_guarded(run, code);
  } catch (const ResourceError&) {
    throw;
  } catch (const SubjectFailure&) {
    throw;
  } catch (const std::exception& error) {
    throw SubjectFailure("the layer threw: " + first_line(error.what()));
  }
}

GuardedSubject::GuardedSubject(RunConfig run, std::shared_ptr<Subject> subject)
    : run_(std::move(run)), subject_(std::move(subject)) {}

at::Tensor GuardedSubject::forward(const AttentionInput& input) {
  at::Tensor output;
  run_subject_code(run_, [&] { output = subject_->forward(input); });
  require_output_like(output, input.x);
  return output;
}

std::optional<CapturedSteps> GuardedSubject::forward_with_steps(const AttentionInput& input) {
  std::optional<CapturedSteps> steps;
  run_subject_code(run_, [&] { steps = subject_->forward_with_steps(input); });
  return steps;
}

std::optional<std::vector<DecodedPiece>> GuardedSubject::forward_in_pieces(const AttentionInput& input,
                                                                           const std::vector<std::int64_t>& lengths) {
  std::optional<std::vector<DecodedPiece>> pieces;
  run_subject_code(run_, [&] { pieces = subject_->forward_in_pieces(input, lengths); });
  if (!pieces.has_value()) return std::nullopt;
  if (pieces->size() != lengths.size()) {
    throw SubjectFailure("pieces: expected " + std::to_string(lengths.size()) + ", got " +
                         std::to_string(pieces->size()));
  }
  std::int64_t first = 0;
  for (std::size_t n = 0; n < lengths.size(); first += lengths[n], ++n) {
    require_output_like((*pieces)[n].output, input.x.narrow(1, first, lengths[n]));
  }
  return pieces;
}

std::optional<CapturedSteps> GuardedSubject::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                                    const std::optional<at::Tensor>& mask,
                                                    const at::Tensor& real_keys) {
  std::optional<CapturedSteps> steps;
  run_subject_code(run_, [&] { steps = subject_->attend(q, k, v, mask, real_keys); });
  return steps;
}

std::vector<std::pair<std::string, at::Tensor>> GuardedSubject::named_parameters() {
  return subject_->named_parameters();
}

void GuardedSubject::train(bool on) {
  run_subject_code(run_, [&] { subject_->train(on); });
}

std::unique_ptr<Subject> GuardedSubject::without_masks() {
  std::unique_ptr<Subject> changed;
  run_subject_code(run_, [&] { changed = subject_->without_masks(); });
  return guarded(std::move(changed));
}

std::unique_ptr<Subject> GuardedSubject::with_dropout(double dropout) {
  std::unique_ptr<Subject> changed;
  run_subject_code(run_, [&] { changed = subject_->with_dropout(dropout); });
  return guarded(std::move(changed));
}

std::unique_ptr<Subject> GuardedSubject::rebuild(Dtype dtype) {
  std::unique_ptr<Subject> rebuilt;
  run_subject_code(run_, [&] { rebuilt = subject_->rebuild(dtype); });
  return guarded(std::move(rebuilt));
}

std::unique_ptr<Subject> GuardedSubject::guarded(std::unique_ptr<Subject> subject) const {
  if (subject == nullptr) return nullptr;
  return std::make_unique<GuardedSubject>(run_, std::move(subject));
}

}  // namespace attn
