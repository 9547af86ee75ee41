#include "checks/check_context.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <torch/utils.h>

#include <algorithm>
#include <utility>

#include "checks/exact_run.h"
#include "checks/reference/plain_attention.h"
#include "checks/reference_run.h"
#include "experiment/random_input.h"

namespace attn {

CheckContext::CheckContext(Subject& subject, RunConfig run, const AttentionInput& input, bool quick)
    : run_(std::move(run)), input_(input), quick_(quick) {
  input_.x = input.x.detach();
  if (has_memory()) input_.memory = input.memory.detach();
  const std::shared_ptr<Subject> not_owned(&subject, [](Subject*) {});
  subject_ = std::make_unique<GuardedSubject>(run_, not_owned);
}

const at::Tensor& CheckContext::visible() {
  if (!visible_.defined()) visible_ = declared_mask(config(), T(), T_k(), input_.real_keys, x().device());
  return visible_;
}

at::Tensor CheckContext::visible_to(std::int64_t item) {
  return visible().narrow(0, std::min(item, visible().size(0) - 1), 1);
}

at::Tensor CheckContext::parameter(const std::string& name) {
  for (const auto& [shown, value] : subject_->named_parameters()) {
    if (shown == name) return value.detach();
  }
  return {};
}

const CapturedPass* CheckContext::pass() {
  if (!pass_made_) pass_ = capture_pass(*subject_, run_, input_, draw(x().sizes().vec(), Draw::kGradient));
  pass_made_ = true;
  return pass_.has_value() ? &*pass_ : nullptr;
}

const at::Tensor* CheckContext::step(Step step, const std::vector<std::int64_t>& expected_shape) {
  const CapturedPass* captured = pass();
  return captured == nullptr ? nullptr : captured_step(captured->steps, step, expected_shape);
}

ReferenceRun& CheckContext::reference() {
  if (reference_ == nullptr) reference_ = std::make_shared<ReferenceRun>(*this);
  return *reference_;
}

ReferenceRun* CheckContext::exact_reference() {
  if (!exact_reference_made_ && x().scalar_type() != at::kDouble) {
    if (std::unique_ptr<Subject> exact = rebuilt_in_float64(*subject_)) {
      exact_reference_ = std::make_shared<ReferenceRun>(*this, std::move(exact), reference());
    }
  }
  exact_reference_made_ = true;
  return exact_reference_.get();
}

void CheckContext::forget_references() {
  if (reference().why_not().empty()) output_budget();
  exact_reference_.reset();
  reference_.reset();
  exact_reference_made_ = false;
}

ErrorBudget CheckContext::output_budget() {
  if (output_budget_.has_value()) return *output_budget_;
  ReferenceRun& judged = reference();
  const bool shown = judged.why_not().empty();
  if (shown && at::isfinite(judged.plain().output).all().item<bool>()) {
    const at::Tensor& loops = judged.loops().output;
    const double plain_error = (judged.plain().output.to(loops.options()) - loops).abs().max().item<double>();
    output_budget_ = budget_of(plain_error, judged.plain().size, x().scalar_type(), judged.longest_sum());
  } else {
    const at::NoGradGuard no_gradients;
    const at::Tensor output = shown ? judged.loops().output : subject_->forward(input_);
    const RoundingSize size{output.abs().max().item<double>(), shown ? judged.plain().size.score : 0.0};
    output_budget_ = cap_of(size, x().scalar_type(), judged.longest_sum());
  }
  return *output_budget_;
}

at::Tensor CheckContext::draw(const std::vector<std::int64_t>& shape, Draw use) const {
  constexpr std::uint64_t kFarApart = 0x100000001b3;  // any odd number: neighbouring seeds stay different streams
  const std::uint64_t seed = run_.seed + static_cast<std::uint64_t>(use) * kFarApart;
  return random_normal(shape, seed, RandomStream::kChecks).to(x().options());
}

}  // namespace attn
