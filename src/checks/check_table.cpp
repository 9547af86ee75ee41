#include "checks/check_table.h"

namespace attn {

const std::vector<CheckEntry>& check_table() {
  static const std::vector<CheckEntry> table = {
      {{"shapes", "every step, forward and backward, has the shape its formula gives; dtype and device stay", "steps",
        "Compares the shape of each named step, and of its gradient, with the formula in B, T, d_model, H, H_kv and "
        "d_k, and their order with the one that the config gives; "
        "also that dtype and device stay what the config says. Sees an axis too many, a missing transpose where "
        "the sizes differ, a silent cast. Cannot see anything that keeps the shapes."},
       check_shapes},
      {{"finite", "no NaN and no infinity in steps, output and gradients, and no gradient that is all zero", "-",
        "Looks at every number of every step, of the output and of all gradients; -inf is right only where a "
        "masked score stands. A parameter that no gradient reaches, or whose gradient is all zero where one is "
        "due, is a failure: dq and dk are rightly 0 only where every row sees one key."},
       check_finite},
      {{"row-sums", "the weights of each query sum to 1, or to what a sink leaves", "weights",
        "Sums the weights of each query over the keys; the limit is one rounding and T summed ones. A row that sees "
        "no key sums to 0; with a sink the sum is 1 less its share, worked out from the layer's own scores. On "
        "failure it "
        "says whether columns or heads sum to 1 instead (softmax over the wrong axis), or whether the sums scatter "
        "as active dropout makes them. Cannot see weights that are wrong and sum to 1."},
       check_row_sums,
       without_weights},
      {{"masked-weights", "hidden keys have weight exactly 0, visible ones more", "weights",
        "Every weight outside the declared mask must be exactly 0: no tolerance. Every visible one must be above "
        "0, unless its score is so low that the format rightly gives 0. Looks at what the layer shows as weights; "
        "what it really uses is judged by effective-mask."},
       check_masked_weights,
       without_weights},
      {{"first-token", "the first token sees only itself: its context is its value, exactly", "v, context",
        "With one visible key the weight is 1, so context at t = 0 equals v at t = 0 bit for bit. Does not apply "
        "without a causal mask, with one token, with a sink, or where the first token is padding."},
       check_first_token,
       without_first_token},
      {{"scale", "scores are multiplied by 1/sqrt(d_k), or the config's scale", "q, k, scaled scores",
        "Recovers the factor between scaled scores and raw dot products by least squares, within what rounding can "
        "do, and names the usual mistakes (1, 1/d_k, 1/sqrt(d_model), 1/sqrt(H)). Beside it: with q, k ~ N(0, 1) "
        "scaled scores have variance 1. Cannot say anything when all scores of a query are equal."},
       check_scale,
       without_scores},
      {{"sink", "the sink takes e^sink / (e^sink + sum of e^score) of every row", "parameters",
        "With queries of 0 every score is 0, and with values of 1 the context is what the weights sum to: compared "
        "with the formula for every head. Sees a sink that is dropped, added to the scores or belongs to another "
        "head. What it does in the run itself is judged by row-sums. Does not apply without a sink."},
       check_sink,
       without_sink},
      {{"rope-relative", "q and k are turned by position * frequency, v is not: scores depend on i - j only",
        "q and k before and after",
        "Runs one token at all positions, beyond 256 where the layer takes that many, since bfloat16 has no number "
        "between 256 and 258. Turned q and k are compared with the judge's own rotation in float64 (a failure says "
        "when they match the other style, theta 10000 or no scaling); scores must stay the same one place further "
        "on; every context must be that token's value. Does not apply without rope."},
       check_rope_relative,
       without_rope},
      {{"gqa-map", "query head h uses key head floor(h * H_kv / H), for keys and for values", "-",
        "Marks one key head at a time: a value of 1 in it, all others 0, then a key that attracts every query. The "
        "context of each query head shows which key head serves it, without any tolerance, and the line prints "
        "the map. Sees heads that are tiled instead of repeated side by side. Does not apply when H_kv is H."},
       check_gqa_map,
       without_groups},
      {{"causality", "changing tokens from t on changes no bit of any output before t, for every t", "-",
        "For every cut t the tokens from t on are redrawn, sign flipped and tripled, and every earlier output is "
        "compared bit for bit with an unchanged run of the same shape, slot by slot: no tolerance. Above a budget "
        "a sample of the cuts is taken (it always holds both ends and both sides of every power of two), and the "
        "line says so. Where the run's format rounds every change away, float64 decides, which the line says too."},
       check_causality,
       without_future},
      {{"causality-gradient", "the gradient of output t with respect to later inputs is 0, to earlier ones is not", "-",
        "Every output row is given a random direction of its own; its gradient must be exactly 0 at every later "
        "token and not 0 at any token up to its own. Run on an input with even weights, so that no gradient "
        "underflows. Sees a leak in the backward pass alone, and a token that is wrongly cut off."},
       check_causality_gradient,
       without_future},
      {{"effective-mask", "the map of which key moves which query equals the declared mask, both ways", "-",
        "Three measurements. The weights that the core really uses are read out of its context, with unit vectors "
        "as values, for every head and item: exactly 0 where the mask hides the key, more where it shows it. Then "
        "k_j and v_j are moved, one key at a time, which also shows a hidden key that takes part in the normaliser "
        "alone. Then one token of x at a time, through the whole layer: no bit of an output that may not see it "
        "may move (the diagonal says nothing, since x_j also moves q_j). Where q, k and v cannot be fed in, only "
        "the last one is made. With --picture FILE a failure is drawn. Above a budget a sample of the keys is "
        "tried, and the line says so."},
       check_effective_mask},
      {{"window", "each query sees the W keys that the window leaves it, its own included", "-",
        "Counts the keys that have a weight in each row, and prints the counts as a list: 1,2,3,3,3 for a window of "
        "3. Where the run is no longer than the window, more tokens are taken, if the layer takes them. A failure "
        "says when the window is off by one or not applied. Does not apply without a window."},
       check_window,
       without_window},
      {{"padding", "an item that is filled up gives what it gives alone; padding counts for nothing", "-",
        "Redraws everything that is padding: no bit of any other output may move. Runs each item alone, without "
        "what it was filled up with, and compares within twice the rounding budget. Rows that see no key must have "
        "context 0. Does not apply without padding."},
       check_padding,
       without_padding},
      {{"mask-control", "with the mask off the same change does move earlier outputs", "a mask switch",
        "The proof that causality can fail here: causal mask, window and mask of its own are taken off (padding "
        "stays), the same changes are made, and earlier outputs must move. If they do not, in float64 neither, "
        "something else than the mask keeps the layer causal, or nothing was tested."},
       check_mask_control,
       without_future},
      {{"truncation", "the first t tokens alone give the first t outputs", "-",
        "Runs the layer on a prefix and compares with the full run, within twice the rounding budget of the "
        "output: another length means other blocking, so last bits may differ. Three lengths are run once more in "
        "float64, where a bug stays and rounding vanishes. Sees what depends on the total length: a normaliser over "
        "all positions, an average over the sequence. Causal layers only."},
       check_truncation,
       without_future},
      {{"kv-cache", "the same tokens in pieces, with a cache, give what one run gives", "a cache",
        "Gives the tokens one at a time, several at a time, after a prefill, and as the config's own cache has it, "
        "and compares every output with that of one run, within twice the rounding budget, and once more in float64, "
        "where a bug stays and rounding vanishes. A second run after the cache was emptied must equal the first bit "
        "for bit. The cache may hold no key that a window hides for good, and no more bytes than 2 * B * H_kv * keys "
        "* d_k numbers have. For causal layers without a memory."},
       check_kv_cache,
       without_calls},
      {{"sdpa-forward", "context equals scaled_dot_product_attention of the same q, k, v", "q, k, v, context",
        "The captured q, k, v go through every backend of scaled_dot_product_attention that this LibTorch offers, "
        "contiguous and strided, and through loops in float64. In float32 the limit is 1e-6 * max(1, largest "
        "value), or twice the plain formula's own error if that is more; the same comparison is made in float64, "
        "where a bug stays and rounding vanishes."},
       check_sdpa_forward,
       without_library},
      {{"sdpa-backward", "dq, dk, dv equal those of scaled_dot_product_attention", "q, k, v, context, gradients",
        "The captured gradient of context goes backward through the same backends and loops, and dq, dk, dv are "
        "compared with the layer's own. Limits as for sdpa-forward, on the largest gradient of the three."},
       check_sdpa_backward,
       without_library},
      {{"reference-forward", "the layer's output equals that of float64 loops with the same parameters", "parameters",
        "Projections, heads, attention and output projection are worked out once more in plain loops over float64, "
        "which share nothing with the layer. The limit is twice what the plain formula errs in the run's "
        "precision, plus one rounding; with engine sdpa the formula calls LibTorch's function. In float64 the layer "
        "must agree to 1e-12, so that a bug, which stays there, is told from rounding, which vanishes. Sees a wrong "
        "layout of fused projections. Above a budget one item and a random sample of its rows are judged, and the line "
        "says so."},
       check_reference_forward},
      {{"reference-weights", "the attention weights equal those of the float64 loops", "parameters, weights",
        "As reference-forward, for the weights that the layer shows, before dropout."},
       check_reference_weights,
       without_weights},
      {{"reference-backward", "the gradients of input and parameters equal those of the float64 loops", "parameters",
        "The loops have a backward pass of their own, written by hand, which gives the gradient of the input and "
        "of every parameter in the layout in which it is stored. One limit for all of them, from the largest "
        "gradient of the layer, since some are 0 by right (that of a key bias), and from what roundings of every input "
        "do to them: a gradient is a sum over all tokens, whose terms may cancel."},
       check_reference_backward},
      {{"gradient", "autograd agrees with central differences in float64", "-",
        "The layer is rebuilt in float64; along random directions of the input and of each parameter the slope of "
        "a random projection of the output is measured by central differences and compared with the gradient. The "
        "limit follows from two step widths (what the cut-off series leaves) and from rounding. Trusts the forward "
        "pass: it sees only a backward pass that does not fit it."},
       check_gradient},
      {{"batch-independence", "an item alone equals itself in a batch, and no item moves another", "-",
        "Each item of a batch (the check doubles a batch of 1) is run alone, with its own padding and memory, and must "
        "equal itself in the batch within rounding; then one item is changed, and no bit of another may move."},
       check_batch_independence},
      {{"head-independence", "changing one head's queries, keys, values or projections moves no other head", "context",
        "Redraws q, k and v of one head and looks for a changed bit in another head's context; where heads share a "
        "key head, all of its heads must move and no other, and q of one head alone moves that one; then does the same "
        "to that head's rows of the projections, which shows heads that are split at the wrong place. H = 1 has "
        "nothing to say."},
       check_head_independence,
       without_other_head},
      {{"permutation", "keys and values in another order, with the mask's columns, change nothing", "-",
        "Permutes keys and values together with the columns of the mask: the context must stay, within rounding. "
        "Where nothing counts places, permuting the tokens must permute the outputs, and permuting those of a memory "
        "change nothing. Does not apply with alibi."},
       check_permutation,
       without_order},
      {{"nan-propagation", "a NaN or infinity that a query may see reaches its output", "-",
        "Puts a NaN, then an infinity, into one token and looks at every output that may see it: none may be "
        "finite. A layer that turns NaN into 0 hides the fault of whatever comes before it."},
       check_nan_propagation},
      {{"determinism", "two runs, watched or not, and a rebuilt layer agree bit for bit", "-",
        "Two runs in eval mode with another input between them, a run with the steps watched, and a layer built "
        "once more from the same seed must agree bit for bit. Sees noise, state kept between calls, an observer "
        "that interferes."},
       check_determinism},
      {{"dropout", "off in eval; in training drops its share and scales the rest by 1/(1 - p)", "a train switch",
        "In eval the output equals that of the layer with dropout 0, before and after training mode. In training "
        "the dropped share is p within six standard deviations and every survivor is scaled by 1/(1 - p). Does not "
        "apply when dropout is 0."},
       check_dropout,
       without_dropout},
  };
  return table;
}

}  // namespace attn
