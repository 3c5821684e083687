// The whole window by keyboard and for screen readers: Tab comes to every control of every dock and leaves it
// again, and whatever takes the keyboard says its name.

#include <QtCore/QObject>
#include <QtCore/QSet>
#include <QtGui/QAccessible>
#include <QtTest/QTest>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QAbstractSpinBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTabBar>

#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"

using namespace planloom;

namespace {

constexpr int kMostTabs = 500;

QString placeOf(const QWidget *widget)
{
    QString text;
    for (const QWidget *each = widget; each && !each->isWindow(); each = each->parentWidget()) {
        text.prepend(QStringLiteral("/%1%2").arg(QLatin1String(each->metaObject()->className()),
            each->objectName().isEmpty() ? QString() : QLatin1Char(':') + each->objectName()));
    }
    return text;
}

bool takesTab(const QWidget *widget)
{
    return widget->isVisible() && widget->isEnabled() && (widget->focusPolicy() & Qt::TabFocus) != 0
        && widget->focusProxy() == nullptr;
}

/// The part of another control that takes the keyboard for it.
bool isPart(const QWidget *widget)
{
    const QWidget *parent = widget->parentWidget();
    return qobject_cast<const QComboBox *>(parent) || qobject_cast<const QAbstractSpinBox *>(parent);
}

} // namespace

class KeyboardTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        m_at.workspace().openWith(
            {kSmallGpt, {}, {}}, "dgx-a100", 4, "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4");
        QTRY_VERIFY_WITH_TIMEOUT(
            m_at.workspace().model() && m_at.settled() && m_at.dag()->isSettled(), kPatience);
        m_at.workspace().nameCheckpoint(QStringLiteral("first"));
        m_at.window->selection().select({m_at.named("h.0.mlp.c_fc")});
    }

    void whatTakesTheKeyboardSaysItsName()
    {
        QSet<QString> nameless;
        eachDock([&](QDockWidget *) {
            for (QWidget *widget : m_at.window->findChildren<QWidget *>()) {
                if (!takesTab(widget) || isPart(widget))
                    continue;
                QAccessibleInterface *accessible = QAccessible::queryAccessibleInterface(widget);
                if (!accessible || accessible->text(QAccessible::Name).trimmed().isEmpty())
                    nameless.insert(placeOf(widget));
            }
        });
        QVERIFY2(nameless.isEmpty(), qPrintable(QStringList(nameless.values()).join(QLatin1Char('\n'))));
    }

    void tabComesToEveryControlOfEveryDock()
    {
        QSet<QString> missed;
        int docks = 0;
        eachDock([&](QDockWidget *dock) {
            ++docks;
            m_at.window->activateWindow();
            QVERIFY(QTest::qWaitForWindowActive(m_at.window.get()));
            QList<QWidget *> wanted;
            for (QWidget *widget : dock->widget()->findChildren<QWidget *>()) {
                if (takesTab(widget) && !isPart(widget))
                    wanted.append(widget);
            }
            if (wanted.isEmpty()) {
                if (takesTab(dock->widget()))
                    wanted.append(dock->widget());
                else
                    return;
            }
            QSet<QWidget *> seen;
            wanted.front()->setFocus(Qt::TabFocusReason);
            for (int i = 0; i < kMostTabs; ++i) {
                QWidget *now = QApplication::focusWidget();
                QVERIFY2(now, qPrintable(dock->objectName()));
                seen.insert(now);
                if (isPart(now))
                    seen.insert(now->parentWidget());
                QTest::keyClick(now, Qt::Key_Tab);
                if (i > 0 && QApplication::focusWidget() == wanted.front())
                    break;
            }
            for (QWidget *widget : wanted) {
                if (!seen.contains(widget) && takesTab(widget))
                    missed.insert(dock->objectName() + QStringLiteral(": ") + placeOf(widget));
            }
        });
        QVERIFY(docks >= 10);
        QVERIFY2(missed.isEmpty(), qPrintable(QStringList(missed.values()).join(QLatin1Char('\n'))));
    }

    void aKeyLeadsToTheCanvasesFromAnywhere()
    {
        eachDock([&](QDockWidget *dock) {
            QTest::keyClick(dock->widget(), Qt::Key_1, Qt::ControlModifier);
            QVERIFY(m_at.dag()->hasFocus());
            QTest::keyClick(dock->widget(), Qt::Key_2, Qt::ControlModifier);
            QVERIFY(m_at.timeline()->hasFocus());
        });
    }

private:
    void eachDock(const std::function<void(QDockWidget *)> &look)
    {
        for (QDockWidget *dock : m_at.window->findChildren<QDockWidget *>()) {
            m_at.window->docks().reveal(dock->objectName());
            QCoreApplication::processEvents();
            if (!dock->isVisible())
                continue;
            look(dock);
            if (QTest::currentTestFailed())
                return;
        }
    }

    WindowForTests m_at;
};

PLANLOOM_QTEST(KeyboardTest)
#include "keyboard_test.moc"
