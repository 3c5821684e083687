#include "engine/kernels/elements/operand_type.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/products/gemm.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

namespace {

struct Equation {
    std::vector<std::string> operands{};
    std::string result{};
};

Equation equationOf(const Operator &op)
{
    Equation equation;
    equation.operands.emplace_back();
    bool behindArrow = false;
    for (const char c : op.attributes.text("equation")) {
        if (c == '>')
            behindArrow = true;
        else if (c == ',')
            equation.operands.emplace_back();
        else if (c != ' ' && c != '-')
            (behindArrow ? equation.result : equation.operands.back()) += c;
    }
    return equation;
}

bool has(const std::string &labels, char label)
{
    return labels.find(label) != std::string::npos;
}

bool repeats(const std::string &labels)
{
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels.find(labels[i], i + 1) != std::string::npos)
            return true;
    }
    return false;
}

/// A tensor whose dimensions have names.
template<typename T> struct Labelled {
    std::string labels{};
    Shape shape{};
    T *data = nullptr;
};

template<typename T> std::int64_t extentOf(const Labelled<T> &tensor, char label)
{
    return tensor.shape[tensor.labels.find(label)];
}

template<typename T> std::int64_t strideOf(const Labelled<T> &tensor, char label)
{
    return denseStrides(tensor.shape)[tensor.labels.find(label)];
}

/// The labels as one dimension of the tensor: its stride, if they lie behind one another in it.
template<typename T>
std::optional<std::int64_t> jointStride(const Labelled<T> &tensor, const std::string &labels)
{
    std::int64_t stride = 1;
    std::int64_t covered = 0; // Stride that the next label outwards must have.
    for (std::size_t i = labels.size(); i-- > 0;) {
        const std::int64_t extent = extentOf(tensor, labels[i]);
        if (extent == 1)
            continue;
        const std::int64_t here = strideOf(tensor, labels[i]);
        if (covered == 0)
            stride = here;
        else if (here != covered)
            return std::nullopt;
        covered = here * extent;
    }
    return stride;
}

template<typename T> std::int64_t extentOfAll(const Labelled<T> &tensor, const std::string &labels)
{
    std::int64_t extent = 1;
    for (const char label : labels)
        extent *= extentOf(tensor, label);
    return extent;
}

/// `tensor` with its dimensions in another order, in `storage`.
template<typename T>
Labelled<const T> reordered(
    const Labelled<const T> &tensor, const std::string &labels, std::vector<T> &storage)
{
    Labelled<const T> made;
    made.labels = labels;
    Shape strides;
    for (const char label : labels) {
        made.shape.push_back(extentOf(tensor, label));
        strides.push_back(strideOf(tensor, label));
    }
    storage.resize(static_cast<std::size_t>(elementCount(made.shape)));
    copyTransposed(made.shape, tensor.data, strides, storage.data());
    made.data = storage.data();
    return made;
}

/// True if a product over two operands is a batched matrix product: no label twice in one tensor, equal
/// extents, and every label in at least two of the three tensors.
template<typename T>
bool isMatrixProduct(const Labelled<const T> &a, const Labelled<const T> &b, const Labelled<SumOf<T>> &c)
{
    if (repeats(a.labels) || repeats(b.labels) || repeats(c.labels))
        return false;
    const auto sameExtents = [](const auto &left, const auto &right) {
        for (const char label : left.labels) {
            if (has(right.labels, label) && extentOf(left, label) != extentOf(right, label))
                return false;
        }
        return true;
    };
    if (!sameExtents(a, b) || !sameExtents(a, c) || !sameExtents(b, c))
        return false;
    for (const char label : a.labels) {
        if (!has(b.labels, label) && !has(c.labels, label))
            return false;
    }
    for (const char label : b.labels) {
        if (!has(a.labels, label) && !has(c.labels, label))
            return false;
    }
    for (const char label : c.labels) {
        if (!has(a.labels, label) && !has(b.labels, label))
            return false;
    }
    return true;
}

/// c = a b as matrix products of [batch, m, k] and [batch, k, n]; tensors whose labels do not already lie so
/// are copied into that order.
template<typename T>
void multiplyLabelled(Labelled<const T> a, Labelled<const T> b, const Labelled<SumOf<T>> &c)
{
    std::string batch;
    std::string m;
    std::string n;
    std::string k;
    for (const char label : c.labels) {
        if (has(a.labels, label) && has(b.labels, label))
            batch += label;
    }
    for (const char label : a.labels) {
        if (!has(b.labels, label))
            m += label;
        else if (!has(c.labels, label))
            k += label;
    }
    for (const char label : b.labels) {
        if (!has(a.labels, label))
            n += label;
    }
    std::vector<T> storageA;
    std::vector<T> storageB;
    const auto suits = [](const Labelled<const T> &tensor, const std::string &rows,
                           const std::string &columns) {
        const auto row = jointStride(tensor, rows);
        const auto column = jointStride(tensor, columns);
        return row && column && (*row == 1 || *column == 1);
    };
    if (!suits(a, m, k))
        a = reordered(a, batch + m + k, storageA);
    if (!suits(b, k, n))
        b = reordered(b, batch + k + n, storageB);

    MatrixProduct<T> product;
    product.m = extentOfAll(a, m);
    product.n = extentOfAll(b, n);
    product.k = extentOfAll(a, k);
    product.a = a.data;
    product.aRow = *jointStride(a, m);
    product.aColumn = *jointStride(a, k);
    product.b = b.data;
    product.bRow = *jointStride(b, k);
    product.bColumn = *jointStride(b, n);
    const auto rowsOfC = jointStride(c, m);
    const auto columnsOfC = jointStride(c, n);
    const bool direct = rowsOfC && columnsOfC
        && ((*columnsOfC == 1 && (product.m == 1 || *rowsOfC >= product.n))
            || (*rowsOfC == 1 && (product.n == 1 || *columnsOfC >= product.m)));
    std::vector<SumOf<T>> storageC;
    Labelled<SumOf<T>> target = c;
    if (!direct) {
        target.labels = batch + m + n;
        target.shape.clear();
        for (const char label : target.labels)
            target.shape.push_back(extentOf(c, label));
        storageC.resize(static_cast<std::size_t>(elementCount(c.shape)));
        target.data = storageC.data();
    }
    product.c = target.data;
    product.cRow = *jointStride(target, m);
    product.cColumn = *jointStride(target, n);
    for (const char label : batch)
        product.batch.push_back(
            {extentOf(a, label), strideOf(a, label), strideOf(b, label), strideOf(target, label)});
    multiply(std::move(product));
    if (!direct) {
        Shape strides;
        for (const char label : c.labels)
            strides.push_back(strideOf(target, label));
        copyTransposed(c.shape, static_cast<const SumOf<T> *>(target.data), strides, c.data);
    }
}

/// The general way: every combination of all labels. `result` may have labels twice (the gradient of a
/// diagonal) and labels that the operands lack (the gradient of a sum).
template<typename T>
void multiplyEverywhere(const std::vector<Labelled<const T>> &operands, const Labelled<SumOf<T>> &result)
{
    std::string labels = result.labels;
    for (const Labelled<const T> &operand : operands)
        labels += operand.labels;
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    Shape extents(labels.size(), 1);
    const auto stridesOf = [&labels](const auto &tensor) {
        Shape strides(labels.size(), 0);
        const Shape dense = denseStrides(tensor.shape);
        for (std::size_t d = 0; d < dense.size(); ++d) {
            if (tensor.shape[d] != 1) // An extent of 1 is broadcast.
                strides[labels.find(tensor.labels[d])] += dense[d];
        }
        return strides;
    };
    const auto widen = [&](const auto &tensor) {
        for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
            std::int64_t &extent = extents[labels.find(tensor.labels[d])];
            extent = extent == 1 ? tensor.shape[d] : extent;
        }
    };
    widen(result);
    std::vector<Shape> strides;
    for (const Labelled<const T> &operand : operands) {
        widen(operand);
        strides.push_back(stridesOf(operand));
    }
    const Shape resultStrides = stridesOf(result);
    std::vector<double> sums(static_cast<std::size_t>(elementCount(result.shape)), 0.0);
    const std::int64_t count = elementCount(extents);
    Shape counter(extents.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        double product = 1;
        for (std::size_t operand = 0; operand < operands.size(); ++operand) {
            std::int64_t offset = 0;
            for (std::size_t d = 0; d < counter.size(); ++d)
                offset += counter[d] * strides[operand][d];
            product *= static_cast<double>(operands[operand].data[offset]);
        }
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < counter.size(); ++d)
            offset += counter[d] * resultStrides[d];
        sums[static_cast<std::size_t>(offset)] += product;
        for (std::size_t d = counter.size(); d-- > 0;) {
            if (++counter[d] < extents[d])
                break;
            counter[d] = 0;
        }
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
        result.data[i] = static_cast<SumOf<T>>(sums[i]);
}

template<typename T>
void contract(const std::vector<Labelled<const T>> &operands, const Labelled<SumOf<T>> &result)
{
    if (operands.size() == 2 && elementCount(operands[0].shape) != 0 && elementCount(operands[1].shape) != 0
        && isMatrixProduct<T>(operands[0], operands[1], result))
        multiplyLabelled<T>(operands[0], operands[1], result);
    else
        multiplyEverywhere<T>(operands, result);
}

Result<void> einsumForward(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    const Equation equation = equationOf(*call.op);
    for (std::size_t i = 0; i < equation.operands.size(); ++i) {
        const Buffer *x = findInput(call, i);
        if (x == nullptr)
            return missingSlot(call, "one of its inputs");
        if (x->shape.size() != equation.operands[i].size())
            return invalidInput(call,
                "operator " + call.op->name + " has equation '" + call.op->attributes.text("equation")
                    + "', which does not fit shape " + toString(x->shape));
    }
    return withOperand(call, call.inputs[0], [&]<typename T>(T) {
        std::vector<Labelled<const T>> operands;
        for (std::size_t i = 0; i < equation.operands.size(); ++i)
            operands.push_back(
                {equation.operands[i], call.inputs[i].shape, elements<const T>(call.inputs[i])});
        contract<T>(operands, Labelled<SumOf<T>>{equation.result, y->shape, elements<SumOf<T>>(*y)});
    });
}

/// The gradient of an operand is the einsum of dy and the other operands into its labels.
Result<void> einsumBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    if (dy == nullptr)
        return missingSlot(call, "a gradient");
    const Equation equation = equationOf(*call.op);
    return withOperand(call, *dy, [&]<typename T>(T) -> Result<void> {
        for (std::size_t i = 0; i < equation.operands.size(); ++i) {
            const Buffer *dx = back.wanted(i);
            if (dx == nullptr)
                continue;
            std::vector<Labelled<const T>> operands{{equation.result, dy->shape, elements<const T>(*dy)}};
            for (std::size_t other = 0; other < equation.operands.size(); ++other) {
                if (other == i)
                    continue;
                const Buffer *x = back.input(other);
                if (x == nullptr)
                    return missingSlot(call, "a saved input");
                operands.push_back({equation.operands[other], x->shape, elements<const T>(*x)});
            }
            contract<T>(
                operands, Labelled<SumOf<T>>{equation.operands[i], dx->shape, elements<SumOf<T>>(*dx)});
        }
        return {};
    });
}

} // namespace

void addEinsumKernels(KernelTable &table)
{
    table.add({OperatorKind::Einsum}, einsumForward, einsumBackward);
}

} // namespace planloom
