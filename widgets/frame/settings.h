#pragma once

#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QVariant>

#include <map>
#include <memory>

class QSettings;

namespace planloom {

/// What a person prefers, beyond sessions: theme, shortcuts, own perspectives, recent commands. Kept in an
/// INI file, or in memory alone. All windows of a process share one, so that a change shows everywhere.
class Settings : public QObject
{
    Q_OBJECT
public:
    /// @param file  path of the INI file; empty keeps the settings in memory, as tests and screenshots want
    explicit Settings(const QString &file = {}, QObject *parent = nullptr);
    ~Settings() override;

    QVariant value(const QString &key, const QVariant &fallback = {}) const;
    /// An invalid value removes the key. Tells only of changes.
    void setValue(const QString &key, const QVariant &value);
    /// Keys that begin with `prefix`, without it.
    QStringList keysUnder(const QString &prefix) const;

Q_SIGNALS:
    void changed(const QString &key);

private:
    std::unique_ptr<QSettings> m_file; ///< Null: in memory.
    std::map<QString, QVariant> m_memory;
};

} // namespace planloom
