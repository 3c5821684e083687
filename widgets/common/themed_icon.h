#pragma once

#include <QtGui/QIcon>

namespace planloom {

/// A vector icon of resources/icons, drawn in the text colour of the theme at whatever size is asked for;
/// follows a change of the theme by itself.
/// @param name  the file's name without ".svg": "split"
QIcon themedIcon(const QString &name);

/// Names of all icons there are.
QStringList iconNames();

} // namespace planloom
