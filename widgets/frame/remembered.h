#pragma once

#include <QtCore/QString>

#include <memory>

class QAction;

namespace planloom {

class Settings;

/// Whether `action` is checked is kept under `key`, and shown alike by all windows.
void remember(QAction *action, const std::shared_ptr<Settings> &settings, const QString &key);

} // namespace planloom
