#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTreeView>

#include "tests/qt_test.h"
#include "widgets/accuracy/accuracy_dialog.h"
#include "widgets/accuracy/accuracy_model.h"
#include "widgets/accuracy/scatter_chart.h"

#include <fstream>
#include <memory>

using namespace planloom;

class AccuracyTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        std::ofstream(m_folder->filePath(QStringLiteral("b.json")).toStdString()) << R"([
            {"file": "b.json", "model": "LLaMA", "device": "H100", "devices": 8, "predicted_seconds": 1.1,
             "measured_seconds": 1.0, "predicted_peak_bytes": 60e9, "measured_peak_bytes": 75e9},
            {"file": "b.json", "model": "GPT", "device": "H100", "devices": 8, "predicted_seconds": 9,
             "measured_seconds": 12},
            {"file": "b.json", "model": "T5", "device": "Q1", "devices": 8, "measured_seconds": 12,
             "skipped": "no profile"}])";
        std::ofstream(m_folder->filePath(QStringLiteral("a.json")).toStdString()) << R"([
            {"file": "a.json", "model": "GPT", "device": "A100", "devices": 64, "framework": "fsdp",
             "predicted_seconds": 3.15, "measured_seconds": 3.0}])";
        m_dialog = new AccuracyDialog(m_folder->path());
        m_dialog->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_dialog));
        QTRY_COMPARE(m_dialog->model().rows().size(), std::size_t{4});
    }

    void cleanup()
    {
        delete m_dialog;
        m_folder.reset();
    }

    void theModelIsATreeOfSources()
    {
        AccuracyModel model;
        const QAbstractItemModelTester tester(&model);
        model.setRows(m_dialog->model().rows());
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.index(1, AccuracyModel::Run).data().toString(), QStringLiteral("b (3 runs)"));
        QCOMPARE(model.index(1, AccuracyModel::Off).data().toString(), QStringLiteral("17.5% (25.0%)"));
        QCOMPARE(model.index(1, AccuracyModel::PeakOff).data().toString(), QStringLiteral("20.0% (20.0%)"));
        const QModelIndex run = model.indexOf(1);
        QCOMPARE(run.parent(), model.index(1, 0));
        QCOMPARE(run.siblingAtColumn(AccuracyModel::Off).data().toString(), QStringLiteral("+10.0%"));
        QCOMPARE(model.indexOf(3).siblingAtColumn(AccuracyModel::Remark).data().toString(),
            QStringLiteral("not predicted: no profile"));
    }

    /// What is selected in the one is in the other.
    void tableAndChartShareTheSelection()
    {
        ScatterChart *chart = m_dialog->chart();
        QCOMPARE(chart->points().size(), std::size_t{3}); // one is not predicted
        chart->grab(); // it paints
        const RunPoint point = chart->points()[1];
        QTest::mouseClick(chart, Qt::LeftButton, {}, chart->placeOf(point).toPoint());
        QCOMPARE(chart->current(), point.row);
        const QModelIndex selected = m_dialog->table()->currentIndex();
        QCOMPARE(selected.data().toString(),
            QString::fromStdString(m_dialog->model().rows()[static_cast<std::size_t>(point.row)].model));
        const QModelIndex other = selected.siblingAtRow(selected.row() == 0 ? 1 : 0);
        m_dialog->table()->setCurrentIndex(other);
        QVERIFY(chart->current() != point.row);
        QTest::keyClick(chart, Qt::Key_Left);
        QTest::keyClick(chart, Qt::Key_Left);
        QTest::keyClick(chart, Qt::Key_Left);
        QCOMPARE(m_dialog->model().rows()[static_cast<std::size_t>(chart->current())].measuredSeconds,
            std::optional(1.0));
    }

    void aFilterIsHeededByBoth()
    {
        auto *words = m_dialog->findChild<QLabel *>(QStringLiteral("words"));
        QVERIFY(words->text().contains(QStringLiteral("of 3 runs")));
        QVERIFY(words->text().contains(QStringLiteral("Not predicted: 1 of 4")));
        auto *filter = m_dialog->findChild<QLineEdit *>(QStringLiteral("filter"));
        QTest::keyClicks(filter, QStringLiteral("FSDP"));
        QCOMPARE(m_dialog->chart()->points().size(), std::size_t{1});
        QCOMPARE(m_dialog->table()->model()->rowCount(), 1);
        QVERIFY(words->text().contains(QStringLiteral("off by 5.0% in the median")));
        filter->clear();
        auto *figure = m_dialog->findChild<QComboBox *>(QStringLiteral("figure"));
        figure->setCurrentIndex(1);
        Q_EMIT figure->activated(1);
        QCOMPARE(m_dialog->chart()->points().size(), std::size_t{1}); // of one run the memory was measured
        m_dialog->chart()->grab();
    }

    /// Columns sort by what they mean, errors by their size.
    void columnsSort()
    {
        m_dialog->table()->sortByColumn(AccuracyModel::Off, Qt::DescendingOrder);
        const QAbstractItemModel *shown = m_dialog->table()->model();
        QCOMPARE(shown->index(0, 0).data().toString(), QStringLiteral("b (3 runs)"));
        QCOMPARE(shown->index(0, 0, shown->index(0, 0)).data().toString(), QStringLiteral("GPT"));
    }

    void aWrongFileIsSaidWithItsPlace()
    {
        std::ofstream(m_folder->filePath(QStringLiteral("c.json")).toStdString()) << R"([{"devices": "8"}])";
        AccuracyDialog dialog(m_folder->path());
        dialog.setAttribute(Qt::WA_DeleteOnClose, false);
        auto *words = dialog.findChild<QLabel *>(QStringLiteral("words"));
        QTRY_VERIFY(words->text().contains(QStringLiteral("c.json#/0/devices")));
    }

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    AccuracyDialog *m_dialog = nullptr;
};

PLANLOOM_QTEST(AccuracyTest)
#include "accuracy_test.moc"
