#include "widgets/scene/memory_colours.h"

namespace planloom {

QColor memoryColour(const Palette &palette, MemoryKind kind)
{
    // Muted earths and waters, away from the clear colours of what computes.
    const auto choose = [&palette](
                            QRgb light, QRgb dark) { return QColor::fromRgb(palette.dark ? dark : light); };
    switch (kind) {
    case MemoryKind::Weight:
        return choose(0xff3d5f66, 0xff7fa6ad);
    case MemoryKind::Gradient:
        return choose(0xff7d7f2e, 0xffc2c46f);
    case MemoryKind::OptimizerState:
        return choose(0xff8a6446, 0xffc79f7f);
    case MemoryKind::Activation:
        return choose(0xff4f939c, 0xff9fd6dc);
    case MemoryKind::Input:
        return categoricalColour(palette, 7);
    case MemoryKind::Communication:
        return choose(0xffb56f92, 0xffe3a9c4);
    }
    return palette.neutral;
}

} // namespace planloom
