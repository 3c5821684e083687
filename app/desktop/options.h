#pragma once

#include <QtCore/QSize>
#include <QtCore/QString>
#include <QtCore/QStringList>

#include "engine/base/result.h"
#include "engine/terminal/program.h"

namespace planloom {

/// What the command line of `planloom` asks for.
struct DesktopOptions {
    QString open{}; ///< File or zoo name; empty for none.
    bool isSession = false; ///< It was named as one.
    bool present = false; ///< Its scenes are presented as soon as there is a plan.
    QString sample{};
    QString lesson{}; ///< Its name, or the folder of one; empty for none.
    QString gallery{};
    int devices = 0; ///< 0: as the session or sample has it.
    QString cluster{};
    QString theme{}; ///< As in `themeFromName`, or empty for the one that is set in the preferences.
    QString colourBy{};
    QString perspective{}; ///< "design", "compare" or "run"; empty for the session's own.
    QString screenshot{}; ///< PNG to write; then the program ends.
    QSize size{}; ///< Of the window.
    QString sessions{}; ///< Folder of sessions without a name; empty for the usual one.
    bool noSession = false; ///< Nothing is kept: no sessions, no recent list, no preferences.
};

/// The program with all its options, from which help, man page and completions are made.
const ProgramSpec &desktopProgram();

/// Gives `--session` in the arguments of a program the name that Qt leaves alone: it takes an option of this
/// name, and its value, for one of the desktop's session manager. `desktopOptions` reads both names alike.
void hideSessionOption(int argc, char **argv);

/// @return InvalidInput for unknown options and wrong values; NotFound for a file that is not there
Result<DesktopOptions> desktopOptions(const QStringList &arguments);

} // namespace planloom
