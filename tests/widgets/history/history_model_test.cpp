#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "widgets/history/history_model.h"

using namespace planloom;

namespace {

StepId addStepAt(History &history, const std::string &words, std::int64_t created = 1'700'000'000'000)
{
    ValueChange change{"v", std::nullopt, words};
    const auto before = history.state().values.find("v");
    if (before != history.state().values.end())
        change.before = before->second;
    const auto step = history.record(words, {{}, {change}}, created);
    return step ? *step : -1;
}

QString text(const QAbstractItemModel &model, int row, int column)
{
    return model.index(row, column).data().toString();
}

} // namespace

class HistoryModelTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void anEditIsOneInsertedRow()
    {
        HistoryModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        History history;
        model.update(history);
        QCOMPARE(model.rowCount(), 1);
        QCOMPARE(text(model, 0, HistoryModel::Words), QStringLiteral("Beginning"));
        QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
        QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
        QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
        addStepAt(history, "split k+ by 4 on fc1");
        model.update(history);
        QCOMPARE(inserted.count(), 1);
        QCOMPARE(reset.count(), 0);
        QCOMPARE(changed.count(), 2); // the beginning is no more the current one, and has a line below
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(text(model, 1, HistoryModel::Words), QStringLiteral("split k+ by 4 on fc1"));
        QCOMPARE(
            model.index(1, 0).data(HistoryModel::PlaceRole).toInt(), static_cast<int>(StepPlace::Current));
        changed.clear();
        model.update(history);
        QCOMPARE(changed.count(), 0); // nothing changed
    }

    void figuresAreComparedWithTheStepBefore()
    {
        HistoryModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        History history;
        const StepId a = addStepAt(history, "a");
        const StepId b = addStepAt(history, "b");
        const StepId c = addStepAt(history, "c");
        const StepId d = addStepAt(history, "d");
        history.setFigures(a, {0.0439, 71LL << 30, true});
        history.setFigures(b, {0.0412, 63LL << 30, true});
        // c could not hold: it has no figures, and d is compared with b
        history.setFigures(d, {0.0412, 64LL << 30, false});
        model.update(history, StepFigures{0.0439, 71LL << 30, true});
        QCOMPARE(text(model, 1, HistoryModel::TimeChange), QStringLiteral("= 0.0%"));
        QCOMPARE(text(model, 2, HistoryModel::StepTime), QStringLiteral("41.2 ms"));
        QCOMPARE(text(model, 2, HistoryModel::TimeChange), QStringLiteral("▼ −6.2%"));
        QCOMPARE(text(model, 2, HistoryModel::PeakChange), QStringLiteral("▼ −8.00 GiB"));
        QCOMPARE(model.index(2, HistoryModel::TimeChange).data(HistoryModel::ChangeRole).toInt(),
            static_cast<int>(Change::Better));
        QCOMPARE(text(model, static_cast<int>(c), HistoryModel::TimeChange), QString());
        QCOMPARE(text(model, 4, HistoryModel::TimeChange), QStringLiteral("= 0.0%"));
        QCOMPARE(text(model, 4, HistoryModel::PeakChange), QStringLiteral("▲ +1.00 GiB"));
        QCOMPARE(model.index(4, HistoryModel::PeakChange).data(HistoryModel::ChangeRole).toInt(),
            static_cast<int>(Change::Worse));
        QVERIFY(model.index(4, 1).data(Qt::ToolTipRole).toString().contains(QStringLiteral("not verified")));
    }

    void branchesAndNamesShowAtTheirStep()
    {
        HistoryModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        History history;
        addStepAt(history, "a");
        addStepAt(history, "b");
        history.setName("good", 1);
        model.update(history);
        history.undo();
        QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
        model.update(history);
        QCOMPARE(changed.count(), 1); // steps 1 and 2, as one run
        QCOMPARE(changed.front().at(0).toModelIndex().row(), 1);
        QCOMPARE(changed.front().at(1).toModelIndex().row(), 2);
        QCOMPARE(model.index(2, 0).data(HistoryModel::PlaceRole).toInt(), static_cast<int>(StepPlace::Redo));
        QCOMPARE(model.index(1, 0).data(HistoryModel::NamesRole).toStringList(),
            QStringList{QStringLiteral("good")});
        QCOMPARE(model.index(2, 0).data(HistoryModel::BranchesRole).toStringList(),
            QStringList{QStringLiteral("main")});
        addStepAt(history, "c");
        model.update(history);
        QCOMPARE(model.index(3, 0).data(HistoryModel::BranchesRole).toStringList(),
            QStringList{QStringLiteral("branch 2")});
        QCOMPARE(
            model.index(2, 0).data(HistoryModel::PlaceRole).toInt(), static_cast<int>(StepPlace::Elsewhere));
        QCOMPARE(model.branchAt(3), 1);
        const QString spoken = model.index(3, HistoryModel::Words).data(Qt::AccessibleTextRole).toString();
        QVERIFY2(spoken.contains(QStringLiteral("end of branch 2")), qPrintable(spoken));
        QVERIFY(spoken.contains(QStringLiteral("you are here")));
    }

    void anotherSessionResets()
    {
        HistoryModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        History history;
        addStepAt(history, "a", 1);
        addStepAt(history, "b", 2);
        model.update(history);
        QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
        History other;
        addStepAt(other, "x", 3);
        model.update(other);
        QCOMPARE(reset.count(), 1);
        QCOMPARE(model.rowCount(), 2);
        History longer;
        for (int i = 0; i < 5; ++i)
            addStepAt(longer, "y", 100 + i);
        model.update(longer);
        QCOMPARE(reset.count(), 2);
        QCOMPARE(model.rowCount(), 6);
    }

    void theFilterFindsWordsNamesAndBranches()
    {
        HistoryModel model;
        HistoryFilter filter;
        QAbstractItemModelTester tester(&filter, QAbstractItemModelTester::FailureReportingMode::QtTest);
        filter.setSourceModel(&model);
        History history;
        addStepAt(history, "split k by 4");
        addStepAt(history, "place fc1 on 2");
        history.setName("Final", 2);
        model.update(history);
        QCOMPARE(filter.rowCount(), 3);
        filter.setText(QStringLiteral("SPLIT"));
        QCOMPARE(filter.rowCount(), 1);
        filter.setText(QStringLiteral("final"));
        QCOMPARE(filter.rowCount(), 1);
        QCOMPARE(text(filter, 0, HistoryModel::Words), QStringLiteral("place fc1 on 2"));
        filter.setText(QStringLiteral("main"));
        QCOMPARE(filter.rowCount(), 1);
        addStepAt(history, "split again");
        model.update(history);
        QCOMPARE(filter.rowCount(), 1); // main ends at the new step
        filter.setText({});
        QCOMPARE(filter.rowCount(), 4);
    }

    void randomHistoriesStayInStep()
    {
        HistoryModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        History history;
        quint32 random = 1;
        const auto next = [&random](quint32 below) {
            random = random * 1664525u + 1013904223u;
            return (random >> 8) % below;
        };
        for (int i = 0; i < 300; ++i) {
            switch (next(6)) {
            case 0:
                history.undo();
                break;
            case 1:
                history.redo();
                break;
            case 2:
                QVERIFY(history.goTo(
                    static_cast<StepId>(next(static_cast<quint32>(history.steps().size()) + 1))));
                break;
            case 3:
                history.setFigures(static_cast<StepId>(next(40)), {1.0 + next(100), next(1000), true});
                break;
            default:
                addStepAt(history, std::to_string(i), i);
            }
            model.update(history);
            HistoryModel fresh;
            fresh.reset(history);
            QCOMPARE(model.rowCount(), fresh.rowCount());
            for (int row = 0; row < model.rowCount(); ++row) {
                QCOMPARE(
                    text(model, row, HistoryModel::TimeChange), text(fresh, row, HistoryModel::TimeChange));
                QCOMPARE(model.index(row, 0).data(HistoryModel::PlaceRole),
                    fresh.index(row, 0).data(HistoryModel::PlaceRole));
            }
        }
    }

    void tenThousandStepsAreTakenInStepByStep()
    {
        History history;
        for (int i = 0; i < 10'000; ++i)
            addStepAt(history, "split k+ by 4 on transformer.h.*.mlp.c_fc " + std::to_string(i), i);
        HistoryModel model;
        HistoryFilter filter;
        filter.setSourceModel(&model);
        model.reset(history);
        QSignalSpy reset(&model, &QAbstractItemModel::modelReset);
        QElapsedTimer clock;
        qint64 slowest = 0;
        for (int i = 0; i < 20; ++i) {
            if (i % 2 == 0)
                addStepAt(history, "one more", 10'000 + i);
            else
                history.undo();
            clock.start();
            model.update(history);
            slowest = std::max(slowest, clock.nsecsElapsed());
        }
        qInfo("slowest change of 10,000 steps: %.2f ms", static_cast<double>(slowest) * 1e-6);
        QCOMPARE(reset.count(), 0);
        QCOMPARE(filter.rowCount(), model.rowCount());
    }
};

PLANLOOM_QTEST_IN(HistoryModelTest, QCoreApplication)
#include "history_model_test.moc"
