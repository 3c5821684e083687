// Hands that change a design as a person does: by keys in the constraint table, gallery and tool bar.
#pragma once

#include <QtGui/QTextCursor>
#include <QtTest/QTest>
#include <QtWidgets/QSpinBox>

#include "engine/lesson/lesson.h"
#include "tests/qt_test.h"
#include "widgets/common/qt_text.h"
#include "widgets/frame/dock_board.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/main_window.h"
#include "widgets/table/table_panel.h"
#include "widgets/table/table_text_editor.h"

namespace planloom {

inline TableTextEditor *textOfRows(MainWindow &window)
{
    window.docks().reveal(QStringLiteral("constraints"));
    window.constraints()->setTextMode(true);
    window.constraints()->textEditor()->setFocus();
    return window.constraints()->textEditor();
}

/// Types a row behind all others.
inline void typeRow(MainWindow &window, const QString &row)
{
    TableTextEditor *editor = textOfRows(window);
    QTest::keyClick(editor, Qt::Key_End, Qt::ControlModifier);
    if (!editor->textCursor().atBlockStart())
        QTest::keyClick(editor, Qt::Key_Return);
    QTest::keyClicks(editor, row);
}

/// Types `row` in the place of the first row that begins with `old`; an empty one takes it away.
inline void retypeRow(MainWindow &window, const QString &old, const QString &row)
{
    TableTextEditor *editor = textOfRows(window);
    const QStringList lines = editor->toPlainText().split(QLatin1Char('\n'));
    qsizetype line = 0;
    while (line < lines.size() && !lines[line].startsWith(old))
        ++line;
    QVERIFY2(line < lines.size(), qPrintable(QStringLiteral("no row begins with ") + old));
    QTest::keyClick(editor, Qt::Key_Home, Qt::ControlModifier);
    for (qsizetype i = 0; i < line; ++i)
        QTest::keyClick(editor, Qt::Key_Down);
    QTest::keyClick(editor, Qt::Key_Home);
    QTest::keyClick(editor, Qt::Key_End, Qt::ShiftModifier);
    QTest::keyClick(editor, Qt::Key_Delete);
    if (row.isEmpty())
        QTest::keyClick(editor, Qt::Key_Delete); // the line's end
    else
        QTest::keyClicks(editor, row);
}

/// One step of a lesson's solution.
inline void doByHand(MainWindow &window, const LessonDeed &deed)
{
    const QString what = toQString(deed.what);
    switch (deed.kind) {
    case DeedKind::Say:
        return;
    case DeedKind::Row:
        typeRow(window, what);
        return;
    case DeedKind::Remove:
        retypeRow(window, what, {});
        return;
    case DeedKind::Replace:
        retypeRow(window, what, toQString(deed.by));
        return;
    case DeedKind::Gallery:
        window.docks().reveal(QStringLiteral("gallery"));
        window.gallery()->line()->setFocus();
        window.gallery()->line()->selectAll();
        QTest::keyClicks(window.gallery()->line(), what);
        QTest::keyClick(window.gallery()->line(), Qt::Key_Return);
        break;
    case DeedKind::Devices: {
        auto *devices = window.findChild<QSpinBox *>(QStringLiteral("devices"));
        devices->setFocus();
        devices->selectAll();
        QTest::keyClicks(devices, QString::number(deed.devices));
        QTest::keyClick(devices, Qt::Key_Return);
        break;
    }
    case DeedKind::Cluster:
        window.workspace().setCluster(deed.what);
        break;
    case DeedKind::Search:
        QVERIFY(window.trigger(QStringLiteral("solve.best")));
        break;
    }
    QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().isPlanning(), kLong);
}

} // namespace planloom
