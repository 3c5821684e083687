#pragma once

#include "engine/base/result.h"
#include "engine/table/kinds/meaning.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// Operators of which the same rows say the same, and which can be cut in the same ways: one stands for all.
struct OperatorClass {
    OperatorId op{}; ///< The first of them.
    std::int32_t count = 1;
    struct Said {
        std::int32_t row = -1;
        std::shared_ptr<const OperatorMeaning> meaning{};
    };
    std::vector<Said> said{}; ///< By row, ascending.
};

/// A pair of an order row: what runs before what. A row that orders all with all is one.
struct OrderPair {
    std::int32_t row = -1;
    std::vector<OperatorId> first{}; ///< Ascending.
    std::vector<OperatorId> second{};
    std::int32_t offset = 0;
    std::int32_t microBatch = -1;
};

/// What the rows of a table say, each read on its own against the model, the mesh and the micro-batches of
/// the table.
struct RowFacts {
    std::vector<std::int32_t> rows{}; ///< Those that are on and must hold, ascending.
    RowSetting setting{};
    PlanMeaning plan{}; ///< Of them together.
    std::vector<std::optional<Error>>
        wrong{}; ///< By row: why it cannot hold, whatever other operator rows say.
    std::vector<std::vector<OperatorId>> operators{}; ///< By row: those that it acts on, ascending.
    std::vector<OperatorClass> classes{};
    std::vector<OrderPair> orders{};
};

/// Preferences are passed by: they give way by themselves. O(rows x operators) at most.
RowFacts factsOf(const Model &model, std::int32_t deviceCount, const ConstraintTable &table);

/// Whether a row names axes of the mesh, or what it says depends on how many micro-batches there are.
bool needsMesh(const Rule &rule);
/// Whether a row may hold in one mesh and not in another, or without: it names axes, or counts parts.
bool dependsOnMesh(const Rule &rule);
bool needsMicroBatches(const Rule &rule);
/// Whether it names a stage, of those that stage and place rows make.
bool namesStage(const Rule &rule);

/// What a class allows with some of its rows, by position in `said`: false if they cannot all hold for one
/// operator.
/// @param microBatches  into how many the batch is cut; 0 leaves it open
bool canHold(const RowSetting &setting, const OperatorClass &operators, const std::vector<std::size_t> &which,
    std::int32_t microBatches);

} // namespace planloom
