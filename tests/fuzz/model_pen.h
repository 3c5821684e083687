#pragma once

#include "tests/dice.h"

#include "engine/check/examples.h"
#include "engine/frontend/zoo/graph_builder.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Writes a model operator by operator, and finds for each slot something to read.
class ModelPen
{
public:
    explicit ModelPen(std::uint64_t seed);

    /// What stands in one of several layers: while it lives, chance falls as in the others, and of what was
    /// made outside only `x` is read.
    class [[nodiscard]] Layer
    {
    public:
        /// @param shares  its weights are those of the other layers
        Layer(ModelPen &pen, bool shares, std::int64_t index, std::uint64_t seed, TensorId x);
        Layer(const Layer &) = delete;
        Layer &operator=(const Layer &) = delete;
        ~Layer();

    private:
        struct Around;
        ModelPen &m_pen;
        GraphBuilder::ScopedScope m_scope;
        Dice m_dice;
        std::vector<TensorId> m_made;
        std::vector<TensorId> m_integers;
        std::vector<TensorId> m_weights;
        std::string m_weightNames;
        std::int64_t m_weightCount;
    };

    Dice &dice() { return m_dice; }
    const TensorType &typeOf(TensorId id) const;
    /// Of operators that were asked for, also those that did not fit.
    std::int64_t operatorCount() const { return m_operators; }

    /// A small extent of a dimension.
    std::int64_t extent() { return m_dice.of<std::int64_t>({1, 2, 2, 3, 4, 4, 4, 5, 6, 6, 8}); }

    /// A floating tensor of the model's own making, or its first input: the last one more often than others.
    TensorId made();
    /// From now on `made` may return it.
    void keep(TensorId id);

    TensorId input(TensorType type);
    TensorId scalar(float value);
    /// Anything that may stand in this slot.
    TensorId operand(const ExampleInput &slot);
    /// Any Float32 tensor of this shape.
    TensorId real(Shape shape);
    /// The tensor, or what some operators make of it, with this shape.
    TensorId adapted(TensorId x, const Shape &wanted);
    /// What some operators make of a floating tensor so that it lies in this range.
    TensorId within(TensorId x, double low, double high);

    /// Appends an operator, if it fits and what it makes is small. @return its outputs, or nothing
    std::vector<TensorId> add(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::vector<TensorType> declared = {});
    /// Its first output; an invalid id if the operator was not added.
    TensorId one(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::vector<TensorType> declared = {});

    /// The last floating tensor, times a weight.
    TensorId multipliedByWeight();

    Result<Graph> finish(std::vector<TensorId> outputs, TensorId loss);

private:
    TensorId note(TensorId id, TensorType type);
    TensorId weight(Shape shape);
    TensorId usedWeight(const Shape &shape);
    TensorId constant(const ExampleInput &slot);
    TensorId integer(const ExampleInput &slot);
    TensorId projected(TensorId x, const Shape &wanted);

    Dice m_dice;
    GraphBuilder m_builder{"random"};
    std::vector<TensorType> m_types{}; ///< By tensor.
    std::vector<TensorId> m_made{};
    std::vector<TensorId> m_integers{}; ///< That operators made.
    std::vector<TensorId> m_weights{};
    std::string m_weightNames{"w"}; ///< What names of weights begin with.
    std::int64_t m_weightCount = 0;
    std::int64_t m_layers = 0;
    std::int64_t m_operators = 0;
};

} // namespace planloom
