#include "engine/table/model.h"

namespace planloom {

Model::Model(GraphSnapshot of)
    : graph(std::move(of))
{
    if (!graph)
        return;
    index = std::make_shared<const SelectorIndex>(graph);
    batch = std::make_shared<const BatchInfo>(analyseBatch(*graph));
}

} // namespace planloom
