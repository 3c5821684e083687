#pragma once

#include "engine/base/result.h"
#include "engine/frontend/import_options.h"
#include "engine/frontend/writer/stored_tensor.h"
#include "engine/graph/graph.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

struct OnnxModel;

/// Reads an ONNX model (opsets 7 to 25; newer ones as far as their operators are known) as a forward graph:
/// every type static, shape arithmetic folded, operators in the canonical forms of operator_kind.h, dead ones
/// removed, patterns fused, every operator annotated, `validate` satisfied.
///
/// Names. Tensors keep the file's names, but for parameters that the exporter folded (a transposed weight is
/// "val_110" in the file) where metadata say from what: these have the parameter's name, and
/// `Tensor::filePart` has the file's. An operator has its node's name, without the leading '/' and with '.'
/// for '/': "/transformer/h.3/attn/c_attn/Gemm" is "transformer.h.3.attn.c_attn.Gemm"; where metadata say
/// the path of modules, it is put before the name. Nodes without a name are "<type>_<number>". A node that
/// becomes several operators gives its name to the last; others add "_<what>".
///
/// What is a weight. Parameters are Weights (trained); everything else that persists is a Buffer.
/// `Tensor::classification` says which and why. The first rule that fits holds:
/// 1. `ImportOptions::storedAs` and `asInputs`. Integers and booleans are constants.
/// 2. Metadata (`InputSpec.kind`, the graph's signature): parameters, buffers and constants are what the
/// exporter says. What it
///    folded (`folded_from`) is a parameter if any of the values it was made from is one (by the graph's
///    signature; without one, by a dotted name), else a constant.
/// 3. Names: buffers if the last part is "attn_mask", "mask", "masked_bias", "cos_cached", "sin_cached",
///    "running_mean", "running_var", "anchors", "final_logits_bias", or ends with "inv_freq"; constants if it
///    is that of a Constant node's output, "Constant_4_output_0".
/// 4. Buffers if only batch normalisation reads them, as statistics; constants if quantizers take them as
///    scales, if they are of rank 0 and only element-wise operators use them (where the name is a module's,
///    as under rule 5, only if these choose or compare), or if only operators such as Resize take them, as
///    numbers.
/// 5. Names with dots are parameters' names ("h.0.mlp.c_fc.weight"). Beside them, and without metadata, so
/// are
///    plain words without a tool's number ("pos_embedding", "logit_scale"), unless they hold infinity or are
///    only subtracted, divided by or compared (the mean and deviation of an image's channels).
/// 6. In files where other floating initializers have such names, position and shape decide. Parameters are:
///    what is read where weights stand (weight or bias of Conv, Gemm and normalisations, the table of a
///    Gather, the second factor of a MatMul, an operand of an Einsum), directly or through Transpose; what
///    Add, Concat or Mul read with one extent above 1 (a bias or scale for each channel); and what Add and
///    Concat read else (positions, class tokens), unless it is of rank 4 with 1 in
///    dimension 1 (masks, rotary tables), is added with 1 in the last dimension but one and more in the first
///    (linear biases of attention), or all its elements are equal. The rest are constants.
/// 7. In files whose names say nothing, all floating initializers are parameters.
/// Inputs that are initializers too (old files) go by these rules. Files without parameters
/// (`export_params=False`): if no initializer is a parameter and some inputs are plain, inputs with a dotted
/// name ("transformer.wte.weight") are parameters by the same rules, as are floating inputs of rank >= 1
/// without symbolic dimensions that are used only where weights stand, and beside such ones, one-dimensional
/// terms and factors. Integer ones become Buffers. A note says how many. Values of Constant and
/// ConstantOfShape nodes of at least 64 elements where weights stand are parameters, too; in a file that has
/// no floating initializers, but weights in nodes, these go by rules 4 and 6 whatever their size.
///
/// Sizes of inputs that the file gives as -1, 0 or nothing are open.
///
/// The loss is the floating output "loss" of one element, or `lossOutput`; it is made a scalar. Dropout
/// trains where its training_mode input is true; a ratio of 0 and inference leave it out. Values of weights
/// beside the file are not read: see `loadTensorData`. `Graph::notes` tells what a user should know (inputs
/// taken as parameters, values that are not finite, missing weight files, fills too large to hold).
///
/// @return InvalidInput or NotSupported naming the file, node or value and what was expected; ResourceLimit;
///   Cancelled. Never partial. Memory: a small multiple of the file plus `mostFoldedBytes`.
/// O(nodes log nodes). Thread-safe: reads nothing but its arguments and the files.
Result<Graph> importOnnxFile(const std::filesystem::path &path, const ImportOptions &options = {});

/// The same from memory.
/// @param folder  where external data may lie; empty takes all of it as missing
/// @param name  of the file they came from, which errors give as their place
Result<Graph> importOnnxBytes(std::string_view bytes, const std::filesystem::path &folder,
    const ImportOptions &options = {}, const std::string &name = "model.onnx");

/// The operators of a model that is read already, as they come: none removed, fused or annotated.
/// @param place  what errors give as their place
/// @return as `importOnnxFile`
Result<Graph> importOnnxModel(OnnxModel model, const ImportOptions &options, const std::string &place);

/// The sizes that the file's inputs leave open; those that `options.dimensions` does not give are 0.
/// @return as `importOnnxFile`, of what is wrong with the file as such or with the sizes
Result<std::vector<InputDimension>> onnxFileDimensions(
    const std::filesystem::path &path, const ImportOptions &options = {});
/// The same from memory; parameters as of `importOnnxBytes`.
Result<std::vector<InputDimension>> onnxDimensions(std::string_view bytes,
    const std::filesystem::path &folder, const ImportOptions &options = {},
    const std::string &name = "model.onnx");

} // namespace planloom
