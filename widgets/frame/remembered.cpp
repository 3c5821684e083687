#include "widgets/frame/remembered.h"

#include <QtGui/QAction>

#include "widgets/frame/settings.h"

namespace planloom {

void remember(QAction *action, const std::shared_ptr<Settings> &settings, const QString &key)
{
    action->setChecked(settings->value(key).toBool());
    QObject::connect(
        action, &QAction::toggled, settings.get(), [settings = settings.get(), key](bool checked) {
            settings->setValue(key, checked ? QVariant(true) : QVariant());
        });
    QObject::connect(settings.get(), &Settings::changed, action,
        [action, settings = settings.get(), key](const QString &changed) {
            if (changed == key)
                action->setChecked(settings->value(key).toBool());
        });
}

} // namespace planloom
