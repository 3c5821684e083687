#include <QtCore/QFile>
#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtGui/QAction>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QTreeWidget>

#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/settings.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/dimensions_dialog.h"
#include "widgets/main/export_help.h"
#include "widgets/main/main_window.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/operator_files_dialog.h"
#include "widgets/main/start_page.h"

using namespace planloom;

/// Files that cannot be planned as they are: sizes are asked for, and what is not understood is looked at.
class OpeningModelsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { applyTheme(*qApp, false); }

    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        WindowServices services;
        services.settings = std::make_shared<Settings>();
        services.sessionFolder = m_folder->filePath(QStringLiteral("sessions"));
        services.recentFolder = services.sessionFolder;
        m_window = std::make_unique<MainWindow>(services);
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
    }
    void cleanup()
    {
        m_window.reset();
        m_folder.reset();
    }

    void sizesAreAskedForAndChangedLater()
    {
        m_window->openHere(QStringLiteral(PLANLOOM_SOURCE_DIR "/tests/engine/frontend/pt2/transformer.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(dialog(), kLong);
        auto *size = dialog()->findChild<QSpinBox *>();
        QCOMPARE(size->minimum(), 2);
        QCOMPARE(size->maximum(), 64);
        QCOMPARE(size->value(), 8); // a usual batch
        size->setValue(4);
        accept();
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QCOMPARE(m_window->workspace().model()->batch->size, std::int64_t{4});

        QTRY_VERIFY(!dialog());
        m_window->commands().find(QStringLiteral("file.sizes"))->trigger();
        QTRY_VERIFY(dialog());
        QCOMPARE(dialog()->findChild<QSpinBox *>()->value(), 4);
        dialog()->findChild<QSpinBox *>()->setValue(6);
        accept();
        QTRY_VERIFY_WITH_TIMEOUT(
            proven() && m_window->workspace().model()->batch->size == 6 && !m_window->workspace().isStale(),
            kLong);
        QVERIFY(m_window->workspace().tableText().find("dim s52 = 6") != std::string::npos);
        QVERIFY(m_window->workspace().canUndo());
    }

    void whoGivesNoSizesOpensNothing()
    {
        m_window->openHere(QStringLiteral(PLANLOOM_SOURCE_DIR "/tests/engine/frontend/pt2/transformer.pt2"));
        QTRY_VERIFY_WITH_TIMEOUT(dialog(), kLong);
        dialog()->reject();
        QVERIFY(!m_window->workspace().isOpening());
        QVERIFY(!m_window->workspace().model());
        QVERIFY(m_window->findChild<StartPage *>()->isVisible());
    }

    /// unread.onnx has an operator of nobody's, and one that picks what data say in a way that is not known.
    void whatCannotBePlannedIsLookedAt()
    {
        m_window->openHere(QStringLiteral(PLANLOOM_SOURCE_DIR "/tests/widgets/main/unread.onnx"));
        const QString id = QStringLiteral("obstacles");
        QTRY_VERIFY_WITH_TIMEOUT(m_window->notices().isShown(id), kLong);
        QVERIFY(m_window->notices().textOf(id).contains(QLatin1String("my.vendor")));
        QVERIFY(m_window->notices().textOf(id).contains(QLatin1String("GatherND")));
        const Workspace &workspace = m_window->workspace();
        QVERIFY(workspace.model()->planProblem);
        QCOMPARE(workspace.model()->graph->operators.size(), std::size_t{7});
        QTRY_VERIFY_WITH_TIMEOUT(workspace.latest() && workspace.latest()->error, kLong);
        QVERIFY(!workspace.gestureContext());
        for (const char *command : {"solve.now", "plan.gallery", "plan.limitMemory", "run.setup"}) {
            const QAction *action = m_window->commands().find(QLatin1String(command));
            QVERIFY2(action, command);
            QTRY_VERIFY2(!action->isEnabled(), command);
        }
        QVERIFY(m_window->commands()
                    .find(QStringLiteral("solve.now"))
                    ->statusTip()
                    .contains(QLatin1String("looked at")));
        QVERIFY(m_window->notices().button(id, QStringLiteral("Show")));
        m_window->notices().button(id, QStringLiteral("Show"))->click();
        QVERIFY(m_window->notices().isShown(id));
        // Another model is another matter.
        m_window->openHere(QStringLiteral("zoo:mlp?layers=2&hidden=32&batch=8"));
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QVERIFY(!m_window->notices().isShown(id));
        QTRY_VERIFY(m_window->commands().find(QStringLiteral("solve.now"))->isEnabled());
    }

    /// With the mouse: Add, a file, Remove.
    void operatorFilesAreAddedAndRemoved()
    {
        const QString path = m_folder->filePath(QStringLiteral("router.ops"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("planloom-operators 1\n\noperator my.vendor::Router\ninputs x\noutputs y\n"
                   "annotation s h -> s h\nbody\n    y = Relu(x)\nend\n");
        file.close();
        m_window->openHere(QStringLiteral(PLANLOOM_SOURCE_DIR "/tests/widgets/main/unread.onnx"));
        const auto obstacles = [this] {
            const auto &model = m_window->workspace().model();
            return model && !m_window->workspace().isOpening() ? model->graph->obstacles.size() : 0;
        };
        QTRY_COMPARE_WITH_TIMEOUT(obstacles(), std::size_t{2}, kLong);
        m_window->commands().find(QStringLiteral("file.operatorFile"))->trigger();
        auto *files = m_window->findChild<OperatorFilesDialog *>();
        QVERIFY(files);
        const auto *list = files->findChild<QTreeWidget *>();
        QCOMPARE(list->topLevelItemCount(), 0);
        const auto click = [&](const QString &text) {
            for (QPushButton *button : files->findChildren<QPushButton *>()) {
                if (QString(button->text()).remove(QLatin1Char('&')) == text) {
                    QTest::mouseClick(button, Qt::LeftButton);
                    return button->isEnabled();
                }
            }
            return false;
        };
        QVERIFY(!click(QStringLiteral("Remove"))); // there is none
        QVERIFY(click(QStringLiteral("Add…")));
        auto *chooser = m_window->findChild<QFileDialog *>();
        QVERIFY(chooser);
        Q_EMIT chooser->fileSelected(path);
        chooser->reject();
        QTRY_COMPARE_WITH_TIMEOUT(obstacles(), std::size_t{1}, kLong);
        QTRY_COMPARE(list->topLevelItemCount(), 1);
        QCOMPARE(list->topLevelItem(0)->text(0), QStringLiteral("router.ops"));
        QCOMPARE(list->topLevelItem(0)->text(2), QStringLiteral("named here"));
        QVERIFY(click(QStringLiteral("Remove")));
        QTRY_COMPARE_WITH_TIMEOUT(obstacles(), std::size_t{2}, kLong);
        QTRY_COMPARE(list->topLevelItemCount(), 0);
        m_window->workspace().undo(); // a step of the design like others
        QTRY_COMPARE_WITH_TIMEOUT(obstacles(), std::size_t{1}, kLong);
    }

    /// With the mouse: a file that cannot be read is said to be such where it was added, and removed again.
    void aWrongOperatorFileIsNamedWhereItWasAdded()
    {
        const QString path = m_folder->filePath(QStringLiteral("wrong.ops"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("planloom-operators 1\n\noperator my.vendor::Router\ninputs x\noutputs y\nbody\n    y = "
                   "Frob(x)\nend\n");
        file.close();
        m_window->openHere(QStringLiteral(PLANLOOM_SOURCE_DIR "/tests/widgets/main/unread.onnx"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().model() && !m_window->workspace().isOpening(), kLong);
        m_window->commands().find(QStringLiteral("file.operatorFile"))->trigger();
        auto *files = m_window->findChild<OperatorFilesDialog *>();
        QVERIFY(files);
        const auto *list = files->findChild<QTreeWidget *>();
        const auto *problem = files->findChild<QLabel *>(QStringLiteral("problem"));
        QVERIFY(list && problem && !problem->isVisible());
        const auto press = [&](const QString &text) {
            for (QPushButton *button : files->findChildren<QPushButton *>())
                if (QString(button->text()).remove(QLatin1Char('&')) == text)
                    QTest::mouseClick(button, Qt::LeftButton);
        };
        press(QStringLiteral("Add…"));
        auto *chooser = m_window->findChild<QFileDialog *>();
        QVERIFY(chooser);
        Q_EMIT chooser->fileSelected(path);
        chooser->reject();
        QTRY_VERIFY_WITH_TIMEOUT(problem->isVisible(), kLong);
        QVERIFY2(problem->text().contains(QLatin1String("wrong.ops:7:9")), qPrintable(problem->text()));
        QVERIFY(problem->text().contains(QLatin1String("'Frob' is no operator")));
        QTRY_COMPARE(list->topLevelItemCount(), 1);
        QCOMPARE(list->currentItem()->text(0), QStringLiteral("wrong.ops"));
        press(QStringLiteral("Remove"));
        QTRY_COMPARE(list->topLevelItemCount(), 0);
        QVERIFY(!problem->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->workspace().isOpening(), kLong);
        QCOMPARE(m_window->workspace().model()->graph->obstacles.size(), std::size_t{2}); // as it was
    }

    void helpOnOperatorFilesIsInOnePlace()
    {
        QVERIFY(!m_window->commands().find(QStringLiteral("help.operatorFiles")));
        m_window->openHere(QStringLiteral("zoo:mlp?layers=2&hidden=32&batch=8"));
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        m_window->commands().find(QStringLiteral("file.operatorFile"))->trigger();
        auto *files = m_window->findChild<OperatorFilesDialog *>();
        QVERIFY(files);
        for (QPushButton *button : files->findChildren<QPushButton *>())
            if (QString(button->text()).remove(QLatin1Char('&')) == QLatin1String("Help"))
                QTest::mouseClick(button, Qt::LeftButton);
        QVERIFY(m_window->findChild<OperatorFileHelp *>());
    }

private:
    DimensionsDialog *dialog() const { return m_window->findChild<DimensionsDialog *>(); }
    bool proven() const
    {
        const PlanUpdateSnapshot &latest = m_window->workspace().latest();
        return latest && latest->verdict && !m_window->workspace().isOpening();
    }
    void accept()
    {
        for (QPushButton *button : dialog()->findChildren<QPushButton *>()) {
            if (button->isDefault()) {
                button->click();
                return;
            }
        }
        QFAIL("nothing accepts");
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(OpeningModelsTest)
#include "opening_models_test.moc"
