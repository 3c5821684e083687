#include "widgets/frame/settings.h"

#include <QtCore/QSettings>
#include <QtCore/QStringList>

namespace planloom {

Settings::Settings(const QString &file, QObject *parent)
    : QObject(parent)
{
    if (!file.isEmpty())
        m_file = std::make_unique<QSettings>(file, QSettings::IniFormat);
}

Settings::~Settings() = default;

QVariant Settings::value(const QString &key, const QVariant &fallback) const
{
    if (m_file)
        return m_file->value(key, fallback);
    const auto found = m_memory.find(key);
    return found == m_memory.end() ? fallback : found->second;
}

void Settings::setValue(const QString &key, const QVariant &value)
{
    if (this->value(key) == value)
        return;
    if (m_file)
        value.isValid() ? m_file->setValue(key, value) : m_file->remove(key);
    else if (value.isValid())
        m_memory[key] = value;
    else
        m_memory.erase(key);
    Q_EMIT changed(key);
}

QStringList Settings::keysUnder(const QString &prefix) const
{
    QStringList keys;
    if (m_file) {
        for (const QString &key : m_file->allKeys()) {
            if (key.startsWith(prefix))
                keys.append(key.mid(prefix.size()));
        }
        return keys;
    }
    for (const auto &[key, value] : m_memory) {
        if (key.startsWith(prefix))
            keys.append(key.mid(prefix.size()));
    }
    return keys;
}

} // namespace planloom

#include "moc_settings.cpp"
