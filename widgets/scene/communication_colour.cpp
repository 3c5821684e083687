#include "widgets/scene/communication_colour.h"

namespace planloom {

QColor communicationColour(const Palette &palette, InstructionKind kind)
{
    // Pinks, purples and reds: nothing that computes has these.
    const auto choose = [&palette](
                            QRgb light, QRgb dark) { return QColor::fromRgb(palette.dark ? dark : light); };
    switch (kind) {
    case InstructionKind::AllReduce:
        return choose(0xffc2447e, 0xffec84b4);
    case InstructionKind::AllGather:
        return choose(0xff7a3fa0, 0xffb98ae0);
    case InstructionKind::ReduceScatter:
        return choose(0xff8e2a4b, 0xffd9688c);
    case InstructionKind::AllToAll:
        return choose(0xffc44536, 0xfff28b7a);
    case InstructionKind::Broadcast:
        return choose(0xff5b3a8c, 0xff9a84d8);
    case InstructionKind::Shift:
        return choose(0xffa04fb0, 0xffd79ae6);
    default:
        return categoricalColour(palette, 7); // from one device to another
    }
}

} // namespace planloom
