#include "widgets/scene/memory_colours.h"

namespace planloom {

QColor memoryColour(const Palette &palette, MemoryKind kind)
{
    switch (kind) {
    case MemoryKind::Weight:
        return categoricalColour(palette, 0);
    case MemoryKind::Gradient:
        return categoricalColour(palette, 2);
    case MemoryKind::OptimizerState:
        return categoricalColour(palette, 1);
    case MemoryKind::Activation:
        return categoricalColour(palette, 4);
    case MemoryKind::Input:
        return categoricalColour(palette, 7);
    case MemoryKind::Communication:
        return categoricalColour(palette, 3);
    }
    return palette.neutral;
}

} // namespace planloom
