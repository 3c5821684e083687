#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

namespace planloom {

/// A number of BFloat16 as it lies in memory: the upper half of a float.
struct BFloat16 {
    std::uint16_t bits = 0;
    explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
    explicit operator double() const { return static_cast<float>(*this); }
};

/// What products of numbers of type T are summed in, and made of: floats of BFloat16, which is exact.
template<typename T> using SumOf = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

/// One of the loops around a matrix product: how far each matrix moves per iteration, in elements.
struct BatchLoop {
    std::int64_t extent = 1;
    std::int64_t a = 0; ///< 0 where a is the same in every iteration; likewise b.
    std::int64_t b = 0;
    std::int64_t c = 0; ///< 0 where the products of all iterations are summed.
};

/// c [m n] = a [m k] * b [k n] + bias [n] (or c +=), for every combination of the batch loops.
///
/// Strides are in elements, so a transposed operand costs nothing. Of c's two strides one must be 1. Where R
/// holds less than sums do, each is rounded once: then nothing may be added to c, nor batch loops sum.
template<typename T, typename R = SumOf<T>> struct MatrixProduct {
    std::int64_t m = 1;
    std::int64_t n = 1;
    std::int64_t k = 1;
    const T *a = nullptr;
    std::int64_t aRow = 0; ///< From a[i][p] to a[i + 1][p].
    std::int64_t aColumn = 1;
    const T *b = nullptr;
    std::int64_t bRow = 0;
    std::int64_t bColumn = 1;
    R *c = nullptr;
    std::int64_t cRow = 0;
    std::int64_t cColumn = 1;
    const SumOf<T> *bias = nullptr; ///< Added to every row of c; only without batch loops that sum.
    std::vector<BatchLoop> batch{}; ///< Outermost first.
    bool accumulate = false; ///< c += instead of c =; not with a bias.
};

/// Computes the product, in pieces (`forEachPiece`) where it is large, with oneDNN where the build has it, T
/// is float or BFloat16 and the strides suit it. Batch loops that lengthen m, n or k instead are folded into
/// them. O(batch m n k).
template<typename T, typename R> void multiply(MatrixProduct<T, R> product);

extern template void multiply<float>(MatrixProduct<float> product);
extern template void multiply<double>(MatrixProduct<double> product);
extern template void multiply<BFloat16>(MatrixProduct<BFloat16> product);
extern template void multiply<BFloat16>(MatrixProduct<BFloat16, BFloat16> product);

/// One product, or several with the same strides between them: what the two implementations compute.
template<typename T, typename R = SumOf<T>> struct ProductStep {
    MatrixProduct<T, R> product{}; ///< Without batch loops, cColumn 1.
    std::int64_t repeats = 1;
    std::int64_t aStep = 0;
    std::int64_t bStep = 0;
    std::int64_t cStep = 0;
    bool accumulate = false; ///< c += instead of c =.
};

/// The products that `multiply` consists of, in an order in which sums come out right: batch loops that
/// lengthen m, n or k are folded into them. O(products).
template<typename T, typename R>
void forEachStep(MatrixProduct<T, R> product,
    const std::type_identity_t<std::function<void(const ProductStep<T, R> &)>> &visit);

extern template void forEachStep<float>(
    MatrixProduct<float> product, const std::function<void(const ProductStep<float> &)> &visit);

/// With oneDNN. False if it cannot (nothing was written then), or the build does not have it.
bool multiplyWithOneDnn(const ProductStep<float> &step);
bool multiplyWithOneDnn(const ProductStep<BFloat16> &step);
bool multiplyWithOneDnn(const ProductStep<BFloat16, BFloat16> &step);

/// With loops for vectors of 512 bits. False (nothing was written then) if the processor does not have them,
/// or the product is too small for them.
bool multiplyWide(const ProductStep<float> &step);
/// Whether those take less time than what else there is, as far as it was measured.
bool isWideFaster(const ProductStep<float> &step);

/// With loops of our own.
void multiplyPortably(const ProductStep<float> &step);
void multiplyPortably(const ProductStep<double> &step);
void multiplyPortably(const ProductStep<BFloat16> &step);
void multiplyPortably(const ProductStep<BFloat16, BFloat16> &step);

/// Holds OpenMP, with which oneDNN threads, to one thread on the calling thread; cheap after the first time.
void holdToOneThread();

} // namespace planloom
