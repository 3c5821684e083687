#include "widgets/main/application_style.h"

#include <QtGui/QPalette>
#include <QtWidgets/QApplication>
#include <QtWidgets/QStyleFactory>

#include "widgets/common/palette.h"

namespace planloom {

namespace {

/// What Qt's Fusion style draws heavier than a tool for long days should.
QString sheetOf(const Palette &palette)
{
    return QStringLiteral(
        "QToolBar { border: none; border-bottom: 1px solid %1; padding: 3px 6px; spacing: 6px; background: %2; }"
        "QStatusBar { border-top: 1px solid %1; background: %2; }"
        "QStatusBar::item { border: none; }"
        "QMenuBar { background: %2; border-bottom: 1px solid %1; }"
        "QDockWidget { font-weight: 600; }"
        "QDockWidget::title { background: %2; padding: 5px 8px; border-bottom: 1px solid %1; }"
        "QMainWindow::separator { background: %1; width: 3px; height: 3px; }"
        "QSplitter::handle { background: %1; }"
        "QHeaderView::section { background: %2; border: none; border-bottom: 1px solid %1; padding: 3px 6px; }"
        "QToolTip { border: 1px solid %3; padding: 3px; }")
        .arg(palette.grid.name(), palette.surfaceRaised.name(), palette.border.name());
}

} // namespace

void applyTheme(QApplication &application, bool dark)
{
    const Palette &palette = dark ? darkPalette() : lightPalette();
    application.setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    application.setPalette(applicationPalette(palette));
    application.setStyleSheet(sheetOf(palette));
}

bool desktopIsDark(const QApplication &application)
{
    return application.palette().color(QPalette::Window).lightnessF() < 0.5;
}

} // namespace planloom
