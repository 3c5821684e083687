// Parts of means under a softmax, which become summands once they are weighed.

#include "engine/lowering/layout/materialize.h"

#include <cassert>

namespace planloom {

Result<std::vector<Holding>> Materializer::weigh(TensorId tensor, const std::vector<Holding> &parts,
    TensorId by, const std::vector<Holding> &weights, std::int32_t block, OperatorId op)
{
    assert(parts.size() == weights.size());
    std::vector<Need> needs;
    for (const Holding &own : weights)
        needs.push_back({own.device, own.box});
    TRY(const auto all, ensure(by, needs, m_types.accumulated(by), block, op));
    const Task task{.tensor = tensor,
        .op = op,
        .block = block,
        .dataType = m_types.accumulated(tensor),
        .whole = wholeBox(tensor)};
    std::vector<Holding> weighed;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Holding summand = parts[i];
        summand.buffer = newBuffer(task, summand.device, summand.box, summand.summands, memoryOf(tensor));
        m_builder.emit(summand.device, block,
            {.kind = InstructionKind::Weigh,
                .op = op,
                .inputs = {parts[i].buffer, weights[i].buffer, all[i]},
                .outputs = {summand.buffer}});
        weighed.push_back(std::move(summand));
    }
    return weighed;
}

} // namespace planloom
