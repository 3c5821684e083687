#pragma once

#include <QtCore/QString>

#include "engine/base/units.h"
#include "engine/base/words.h"
#include "widgets/common/format.h"

#include <cstdint>

namespace planloom {

/// Quantities with their unit, as `format.h` writes them, for widgets.
inline QString bytesText(Bytes bytes)
{
    return QString::fromStdString(formatBytes(bytes));
}

inline QString bytesText(std::int64_t bytes)
{
    return bytesText(Bytes{bytes});
}

inline QString timeText(Nanoseconds time)
{
    return QString::fromStdString(formatNanoseconds(time.count()));
}

} // namespace planloom
