#pragma once

class QApplication;

namespace planloom {

/// Makes every widget of the application light or dark (palette.h); can be called again at any time.
void applyTheme(QApplication &application, bool dark);

/// True if the desktop the application was started on is dark. Call before `applyTheme`.
bool desktopIsDark(const QApplication &application);

} // namespace planloom
