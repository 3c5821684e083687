#pragma once

#include <QtCore/QString>

#include <string_view>

namespace planloom {

/// Texts of the engine, which are UTF-8, as Qt has them.
inline QString toQString(std::string_view text)
{
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

} // namespace planloom
