#pragma once

#include <QtCore/QMimeData>
#include <QtCore/QString>

#include <string>

namespace planloom {

// What drags of mesh axes and devices carry from the Devices panel to the canvases.

constexpr const char *kAxisMimeType = "application/x-planloom-axis"; ///< "tp", or with its size "tp:4".
constexpr const char *kDeviceMimeType =
    "application/x-planloom-device"; ///< A place as `placeFromText` reads it: "3".

/// The name of the axis that `data` carries; empty without one.
inline std::string axisIn(const QMimeData &data)
{
    const QString text = QString::fromUtf8(data.data(QLatin1String(kAxisMimeType)));
    return text.section(QLatin1Char(':'), 0, 0).trimmed().toStdString();
}

} // namespace planloom
