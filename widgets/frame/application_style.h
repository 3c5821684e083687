#pragma once

#include <QtCore/QObject>
#include <QtCore/QString>

#include "widgets/common/palette.h"

#include <memory>
#include <optional>

class QApplication;

namespace planloom {

class Settings;

/// Gives every widget of the application the theme's look; can be called again at any time.
void applyTheme(QApplication &application, Theme theme);
/// Light or dark.
void applyTheme(QApplication &application, bool dark);

/// What the desktop looks like now, whatever this application has been made to look like.
Theme desktopTheme(QApplication &application);

/// "light", "dark", "high-contrast", "high-contrast-dark" -> a theme; nothing for other words ("system").
std::optional<Theme> themeFromName(const QString &name);
QString nameForTheme(Theme theme);

/// Keeps the application in the theme that the settings ask for: a given one, or the desktop's, followed
/// live.
class ThemeKeeper : public QObject
{
    Q_OBJECT
public:
    ThemeKeeper(QApplication *application, std::shared_ptr<Settings> settings, QObject *parent = nullptr);

    Theme theme() const { return m_theme; }
    /// Nothing is given: the desktop's is followed.
    bool followsDesktop() const;
    /// `name` as in `themeFromName`; anything else follows the desktop. Kept in the settings.
    void choose(const QString &name);
    /// For this run of the program alone, until one is chosen.
    void use(const QString &name);

Q_SIGNALS:
    void themeChanged(planloom::Theme theme);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void refresh(bool always);

    QApplication *m_application;
    std::shared_ptr<Settings> m_settings;
    std::optional<Theme> m_used; ///< In place of what is kept.
    Theme m_theme = Theme::Light;
    bool m_refreshing = false;
};

} // namespace planloom
