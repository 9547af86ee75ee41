// A subject whose exceptions are told apart from ours: whatever it throws becomes SubjectFailure, which is a failed
// check, not a check that could not be carried out.
#pragma once

#include <functional>
#include <memory>

#include "checks/subject.h"
#include "core/error.h"

namespace attn {

/// The subject did something that no honest layer does: threw, or returned another shape or dtype than it must.
class SubjectFailure : public Error {
 public:
  using Error::Error;
};

/// Runs code of the subject. What it throws comes out as SubjectFailure, one line; ResourceError passes through, since
/// a machine without memory says nothing about the layer.
void run_subject_code(const RunConfig& run, const std::function<void()>& code);

class GuardedSubject : public Subject {
 public:
  GuardedSubject(RunConfig run, std::shared_ptr<Subject> subject);

  const AttentionConfig& config() const override { return subject_->config(); }
  /// Also throws SubjectFailure when the output has not x's shape, dtype and device; so does forward_in_pieces().
  at::Tensor forward(const AttentionInput& input) override;
  std::optional<CapturedSteps> forward_with_steps(const AttentionInput& input) override;
  std::optional<std::vector<DecodedPiece>> forward_in_pieces(const AttentionInput& input,
                                                             const std::vector<std::int64_t>& lengths) override;
  std::optional<CapturedSteps> attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const std::optional<at::Tensor>& mask, const at::Tensor& real_keys) override;
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() override;
  void train(bool on) override;
  std::unique_ptr<Subject> without_masks() override;
  std::unique_ptr<Subject> with_dropout(double dropout) override;
  std::unique_ptr<Subject> rebuild(Dtype dtype) override;

 private:
  std::unique_ptr<Subject> guarded(std::unique_ptr<Subject> subject) const;

  RunConfig run_;
  std::shared_ptr<Subject> subject_;
};

}  // namespace attn
