#pragma once

#include "engine/frontend/onnx/onnx_model.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planloom {

// Parameters are tied if several operators read one of them. Exporters change that: they merge parameters
// that happen to be equal, and store a tied one once for each of its readers. Metadata say what was meant.

/// Elements that an initializer may have for the exporter to merge it with equal ones: the limit of
/// onnx_ir's DeduplicateInitializersPass.
constexpr std::int64_t kMostMerged = 1024;

/// Unties what the exporter merged: it keeps one of several equal initializers of up to `kMostMerged`
/// elements, which trains them as one. A node in the module "h.0.ln_2" that reads "h.0.ln_1.weight", where
/// the signature has a parameter "h.0.ln_2.weight" that is nowhere in the file, gets a copy of that name.
/// (Parameters that the module itself ties are larger in practice: embeddings.)
///
/// For graphs whose nodes have the names of the file still. O(nodes + initializers).
/// @return the names of the copies, by what they were copied from
std::map<std::string, std::vector<std::string>> untieMerged(OnnxGraph &graph);

/// Ties what the exporter stored several times: it folds the Transpose before each product, and so makes a
/// copy of a weight for each of its readers.
///
///     embedding reads E; product reads T = transposed E        product reads Transpose(E)
///     products read A and B, both folded from W alone          both read A
///
/// Holds for initializers of two dimensions or more that were folded from one parameter alone, where the
/// values say so, too; the embedding may have another name of the same tied parameter. Uniform values (a
/// fresh bias) prove nothing and are left. In files without a signature, values alone decide: a matrix
/// without a module's name that is the transpose of a parameter with one. O(elements of such initializers).
/// @return how many copies are gone
std::int64_t tieCopies(OnnxGraph &graph);

/// Puts biases back that the exporter left out because they were zero when it wrote the file (as those of a
/// fresh model are): a Gemm or Conv without a bias in the module "h.0.c_attn", where the signature has a
/// parameter "h.0.c_attn.bias" that is nowhere in the file, reads zeros of that name. O(nodes +
/// initializers).
/// @return the names of the biases
std::vector<std::string> restoreZeroBiases(OnnxGraph &graph);

} // namespace planloom
