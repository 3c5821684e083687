#include "widgets/frame/application_style.h"

#include <QtCore/QEvent>
#include <QtGui/QPalette>
#include <QtGui/QWindow>
#include <QtWidgets/QApplication>
#include <QtWidgets/QStyleFactory>

#include "widgets/frame/settings.h"

namespace planloom {

namespace {

const QString kThemeKey = QStringLiteral("theme");

/// What Qt's Fusion style draws heavier than a tool for long days should. Sizes are in font heights.
QString sheetOf(const Palette &palette)
{
    const QString line = (palette.highContrast ? palette.border : palette.grid).name();
    return QStringLiteral(
        "QToolBar { border: none; border-bottom: 1px solid %1; padding: 0.2em 0.4em; spacing: 0.35em; "
        "background: %2; }"
        "QToolButton:checked { background: %4; border: 1px solid %5; border-radius: 3px; }"
        "QStatusBar { border-top: 1px solid %1; background: %2; }"
        "QStatusBar::item { border: none; }"
        "QMenuBar { background: %2; border-bottom: 1px solid %1; }"
        "QDockWidget { font-weight: 600; }"
        "QDockWidget::title { background: %2; padding: 0.3em 0.5em; border-bottom: 1px solid %1; }"
        "QMainWindow::separator { background: %1; width: 3px; height: 3px; }"
        "QSplitter::handle { background: %1; }"
        "QHeaderView::section { background: %2; border: none; border-bottom: 1px solid %1; padding: 0.2em "
        "0.4em; }"
        "QToolTip { border: 1px solid %3; padding: 3px; }"
        "#locator, #shortcutSheet { background: %2; border: 1px solid %3; }")
        .arg(line, palette.surfaceRaised.name(), palette.border.name(),
            mixed(palette.surfaceRaised, palette.accent, 0.18).name(), palette.accent.name());
}

} // namespace

void applyTheme(QApplication &application, Theme theme)
{
    const Palette &palette = paletteOf(theme);
    if (!application.property("planloomFusion").toBool()) {
        application.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
        application.setProperty("planloomFusion", true);
    }
    application.setPalette(applicationPalette(palette));
    application.setStyleSheet(sheetOf(palette));
}

void applyTheme(QApplication &application, bool dark)
{
    applyTheme(application, dark ? Theme::Dark : Theme::Light);
}

Theme desktopTheme(QApplication &application)
{
    // An application palette hides the desktop's; without one, Qt says what that is.
    const QPalette mine = QGuiApplication::palette();
    QGuiApplication::setPalette(QPalette());
    const QPalette desktop = QGuiApplication::palette();
    QGuiApplication::setPalette(mine);
    static_cast<void>(application);
    const QColor window = desktop.color(QPalette::Window);
    const QColor text = desktop.color(QPalette::WindowText);
    const bool dark = window.lightnessF() < 0.5;
    // Desktops in high contrast have nothing but black and white.
    const bool strong = contrastRatio(window, text) > 19.5
        && (window == QColor(Qt::black) || window == QColor(Qt::white))
        && desktop.color(QPalette::Button) == window && desktop.color(QPalette::Base) == window;
    if (strong)
        return dark ? Theme::HighContrastDark : Theme::HighContrastLight;
    return dark ? Theme::Dark : Theme::Light;
}

QString nameForTheme(Theme theme)
{
    switch (theme) {
    case Theme::Light:
        return QStringLiteral("light");
    case Theme::Dark:
        return QStringLiteral("dark");
    case Theme::HighContrastLight:
        return QStringLiteral("high-contrast");
    case Theme::HighContrastDark:
        return QStringLiteral("high-contrast-dark");
    }
    return {};
}

std::optional<Theme> themeFromName(const QString &name)
{
    for (const Theme theme : kThemes) {
        if (name == nameForTheme(theme))
            return theme;
    }
    return std::nullopt;
}

ThemeKeeper::ThemeKeeper(QApplication *application, std::shared_ptr<Settings> settings, QObject *parent)
    : QObject(parent)
    , m_application(application)
    , m_settings(std::move(settings))
{
    m_application->installEventFilter(this);
    connect(m_settings.get(), &Settings::changed, this, [this](const QString &key) {
        if (key == kThemeKey)
            refresh(false);
    });
    refresh(true);
}

bool ThemeKeeper::followsDesktop() const
{
    return !m_used && !themeFromName(m_settings->value(kThemeKey).toString());
}

void ThemeKeeper::use(const QString &name)
{
    m_used = themeFromName(name);
    refresh(false);
}

void ThemeKeeper::choose(const QString &name)
{
    m_used.reset();
    m_settings->setValue(kThemeKey, themeFromName(name) ? QVariant(name) : QVariant());
    refresh(false);
}

void ThemeKeeper::refresh(bool always)
{
    if (m_refreshing)
        return;
    m_refreshing = true; // a change of the palette comes back as an event
    const auto given = m_used ? m_used : themeFromName(m_settings->value(kThemeKey).toString());
    const Theme wanted = given ? *given : desktopTheme(*m_application);
    const bool changed = wanted != m_theme;
    if (changed || always) {
        m_theme = wanted;
        applyTheme(*m_application, wanted);
    }
    m_refreshing = false;
    if (changed)
        Q_EMIT themeChanged(m_theme);
}

bool ThemeKeeper::eventFilter(QObject *watched, QEvent *event)
{
    // The platform tells each window, and once a window is enough.
    if (event->type() == QEvent::ThemeChange && !m_refreshing && watched->isWidgetType() && followsDesktop())
        refresh(false);
    return QObject::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_application_style.cpp"
