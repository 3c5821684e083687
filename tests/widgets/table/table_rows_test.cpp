// What is done with whole rows: switched, moved, dragged, copied, linked with operators, priced.

#include "tests/qt_test.h"
#include "tests/widgets/table/table_panel_fixture.h"

using namespace planloom;

class TableRowsTest : public TablePanelFixture
{
    Q_OBJECT
private Q_SLOTS:
    void cleanup() { close(); }

    void aNarrowBarLeavesOutWhatItsMenuHas()
    {
        open("mesh dp=2 @solver\nsplit all : batch over dp @solver\n");
        const auto shown = [this](const QString &action) {
            const auto buttons = m_panel->findChildren<QToolButton *>();
            return std::any_of(buttons.begin(), buttons.end(), [&](const QToolButton *button) {
                return button->isVisible() && button->defaultAction()
                    && button->defaultAction()->text().startsWith(action);
            });
        };
        const auto isWhole = [this] {
            const auto buttons = m_panel->findChildren<QToolButton *>(QString(), Qt::FindDirectChildrenOnly);
            return std::all_of(buttons.begin(), buttons.end(), [](const QToolButton *button) {
                return !button->isVisible() || button->width() >= button->sizeHint().width();
            });
        };
        QTRY_VERIFY(shown(QStringLiteral("Keep")) && shown(QStringLiteral("Acting")));
        m_panel->resize(m_panel->minimumSizeHint().width() * 3 / 5, 400);
        QTRY_VERIFY(!shown(QStringLiteral("Acting")) && isWhole());
        m_panel->resize(1200, 400);
        QTRY_VERIFY(shown(QStringLiteral("Keep")) && shown(QStringLiteral("Acting")) && isWhole());
    }

    void severalRowsAreEditedAtOnce()
    {
        open("split layer:0 : batch by 2\nsplit layer:1 : batch by 4\n");
        go(0, TableColumn::Note);
        selectRows({0, 1});
        key(Qt::Key_F2);
        QTRY_VERIFY(editor());
        type("both");
        key(Qt::Key_Return);
        QTRY_COMPARE(text(),
            QStringLiteral("split layer:0 : batch by 2  # both\nsplit layer:1 : batch by 4  # both\n"));
        m_workspace->undo();
        QTRY_COMPARE(text(), QStringLiteral("split layer:0 : batch by 2\nsplit layer:1 : batch by 4\n"));
    }

    void keysActOnRows()
    {
        open("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n");
        go(0, TableColumn::Value);
        selectRows({0, 1});
        key(Qt::Key_Space);
        QTRY_COMPARE(text(),
            QStringLiteral(
                "# a\noff split layer:0 : batch by 2\noff split layer:1 : batch by 4\nschedule 1f1b\n"));
        key(Qt::Key_Space);
        QTRY_COMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        selectRows({0});
        key(Qt::Key_Down, Qt::AltModifier);
        QTRY_COMPARE(text(),
            QStringLiteral("split layer:1 : batch by 4\n# a\nsplit layer:0 : batch by 2\nschedule 1f1b\n"));
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{2});
        key(Qt::Key_Up, Qt::AltModifier);
        QTRY_COMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        key(Qt::Key_D, Qt::ControlModifier);
        QTRY_COMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\n# a\nsplit layer:0 : batch by 2\nsplit layer:1 "
                           ": batch by 4\nschedule 1f1b\n"));
        key(Qt::Key_Delete);
        QTRY_COMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 4\nschedule 1f1b\n"));
        go(0, TableColumn::Value);
        selectRows({0, 1});
        key(Qt::Key_Down, Qt::ControlModifier | Qt::ShiftModifier);
        QTRY_COMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\nsplit layer:1 : batch by 2\nschedule 1f1b\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()),
            QStringLiteral("fill the value of row 3 with batch by 2"));
    }

    void rowsAreMustOrPrefer()
    {
        open("prefer place all : devices 0\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n");
        // What can't hold with a row that must is left out, and says so where it stands; that is no error.
        const auto notice = [&](int row) {
            return cell(row, TableColumn::Strength).data(ConstraintTableModel::WarningRole).toString();
        };
        QTRY_COMPARE_WITH_TIMEOUT(notice(0), QStringLiteral("left out: row 2 (must) says otherwise"), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(m_workspace->latest() && m_workspace->latest()->plan, kLong);
        QCOMPARE(m_workspace->latest()->errorCount(), std::size_t{0});
        QVERIFY(!m_panel->rows()->isError(0));
        QCOMPARE(cell(0, TableColumn::Strength).data().toString(), QStringLiteral("prefer"));
        QCOMPARE(cell(1, TableColumn::Strength).data().toString(), QStringLiteral("must"));
        go(0, TableColumn::Strength);
        QTRY_VERIFY2(
            m_panel->message().contains(QStringLiteral("left out: row 2")), qPrintable(m_panel->message()));
        // Must or prefer, and a weight.
        go(1, TableColumn::Strength);
        key(Qt::Key_F2);
        QTRY_VERIFY(qobject_cast<StrengthCellEditor *>(editor()));
        auto *strength = qobject_cast<StrengthCellEditor *>(editor());
        QVERIFY(!strength->weight()->isEnabled());
        QTest::keyClick(strength->kind(), Qt::Key_Down);
        QVERIFY(strength->weight()->isEnabled());
        strength->weight()->setFocus();
        strength->weight()->selectAll();
        type("12");
        key(Qt::Key_Return);
        QTRY_COMPARE(text(),
            QStringLiteral("prefer place all : devices 0\nprefer 12 place layer:1 : devices 1\nplace layer:0 "
                           ": devices 0\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()),
            QStringLiteral("prefer with weight 12: row 2"));
        m_workspace->undo();
        // The action: all to preferences if one of them must hold, back again; one step each.
        const auto steps = m_workspace->history().steps().size();
        go(0, TableColumn::Strength);
        selectRows({0, 1, 2});
        key(Qt::Key_Space, Qt::ShiftModifier);
        QTRY_COMPARE(text(),
            QStringLiteral("prefer place all : devices 0\nprefer place layer:1 : devices 1\nprefer place "
                           "layer:0 : devices 0\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps + 1);
        QTRY_COMPARE_WITH_TIMEOUT(
            notice(1), QStringLiteral("left out: row 1 (prefer 1) says otherwise"), kLong);
        QVERIFY(notice(0).isEmpty());
        selectRows({0, 1, 2});
        action("rows.prefer")->trigger();
        QTRY_COMPARE(text(),
            QStringLiteral("place all : devices 0\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"));
        QTRY_VERIFY_WITH_TIMEOUT(m_panel->rows()->isError(0), kLong);
        m_workspace->undo();
        m_workspace->undo();
        QCOMPARE(text(),
            QStringLiteral(
                "prefer place all : devices 0\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n"));
    }

    void aPasteShowsWhatItWillBindBeforeItIsWritten()
    {
        open("schedule 1f1b\n");
        const auto steps = m_workspace->history().steps().size();
        go(0, TableColumn::Value);
        QGuiApplication::clipboard()->setText(QStringLiteral(
            "Selector\tRule\tValue\tMust/Prefer\nlayer:0\tsplit\tbatch by 2\t3\n"
            "name:nothing.*\tplace\tdevices 0\t\n\tmicro-batches\t2\tmust\nlayer:1\tplace\tdevices x\t\n"));
        key(Qt::Key_V, Qt::ControlModifier);
        PastePreview *preview = m_panel->pastePreview();
        QTRY_VERIFY(preview->isOpen());
        QTRY_VERIFY2(preview->summary().startsWith(QStringLiteral(
                         "2 rows will bind (%1 operators), 1 binds nothing, 1 line can't be read")
                                                       .arg(selectedBy("layer:0").size())),
            qPrintable(preview->summary()));
        QCOMPARE(preview->list()->count(), 4);
        QVERIFY(preview->list()->item(0)->text().contains(
            QStringLiteral("prefer 3 split layer:0 : batch by 2   →")));
        QVERIFY(preview->list()->item(1)->text().startsWith(QStringLiteral("⚠ ")));
        QVERIFY(preview->list()->item(2)->text().endsWith(QStringLiteral("whole plan")));
        QVERIFY(preview->list()->item(3)->text().startsWith(QStringLiteral("✖ ")));
        key(Qt::Key_Escape); // nothing was written, the grid has the keys again
        QVERIFY(!preview->isOpen());
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps);
        QVERIFY(m_panel->grid()->hasFocus());
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(preview->isOpen());
        QTest::mouseClick(preview->cancelButton(), Qt::LeftButton);
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(preview->isOpen());
        key(Qt::Key_Return); // at once: not waiting for what it binds
        QTRY_COMPARE(text(),
            QStringLiteral(
                "schedule 1f1b\nprefer 3 split layer:0 : batch by 2\nplace name:nothing.* : devices 0\n"
                "micro-batches 2\nplace layer:1 : devices x\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps + 1);
        m_workspace->undo();
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
    }

    void rowsAreDraggedToAnotherPlaceAndOutAsText()
    {
        open("# a\nsplit layer:0 : batch by 2\nplace layer:1 : devices 0\nschedule 1f1b\n");
        auto *grid = m_panel->grid();
        go(0, TableColumn::Value);
        selectRows({0});
        const auto middle = [&](int row) { return grid->visualRect(cell(row, TableColumn::Value)).center(); };
        const QRect last = grid->visualRect(cell(2, TableColumn::Value));
        QVERIFY(drop(*dragged(), QPoint(last.center().x(), last.bottom() - 1)));
        QTRY_COMPARE(text(),
            QStringLiteral("place layer:1 : devices 0\nschedule 1f1b\n# a\nsplit layer:0 : batch by 2\n"));
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{3});
        QCOMPARE(
            cell(0, TableColumn::Number).data().toString(), QStringLiteral("1")); // numbers follow the place
        QCOMPARE(cell(2, TableColumn::Number).data().toString(), QStringLiteral("4"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("move row 2"));
        m_workspace->undo();
        QCOMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\nplace layer:1 : devices 0\nschedule 1f1b\n"));
        // Up, before the first row, with the remark above it.
        selectRows({1, 2});
        QVERIFY(drop(*dragged(), middle(0) - QPoint(0, grid->rowHeight(0) / 2 - 1)));
        QTRY_COMPARE(text(),
            QStringLiteral("place layer:1 : devices 0\nschedule 1f1b\n# a\nsplit layer:0 : batch by 2\n"));
        m_workspace->undo();
        // Out of the window they are text; what others bring is no row of this table.
        selectRows({1, 2});
        QCOMPARE(dragged()->text(), QStringLiteral("place layer:1 : devices 0\nschedule 1f1b\n"));
        QMimeData foreign;
        foreign.setText(QStringLiteral("schedule gpipe"));
        QVERIFY(!drop(foreign, middle(0)));
        // Sorted on the screen, places mean nothing.
        m_panel->list()->sort(static_cast<int>(TableColumn::Rule));
        QVERIFY(!drop(*dragged(), middle(0)));
        QCOMPARE(text(),
            QStringLiteral("# a\nsplit layer:0 : batch by 2\nplace layer:1 : devices 0\nschedule 1f1b\n"));
    }

    void aPressAndAShortMoveAreNoDrag()
    {
        open("split layer:0 : batch by 2\nschedule 1f1b\n");
        auto *grid = m_panel->grid();
        go(0, TableColumn::Value);
        selectRows({0});
        const QPoint at = grid->visualRect(cell(0, TableColumn::Value)).center();
        QVERIFY(cell(0, TableColumn::Value).flags() & Qt::ItemIsDragEnabled);
        QTest::mousePress(grid->viewport(), Qt::LeftButton, {}, at);
        QTest::mouseMove(grid->viewport(), at + QPoint(1, 1));
        QTest::mouseRelease(grid->viewport(), Qt::LeftButton, {}, at + QPoint(1, 1));
        QCOMPARE(text(), QStringLiteral("split layer:0 : batch by 2\nschedule 1f1b\n"));
        QCOMPARE(m_panel->selectedLines(), std::vector<std::int32_t>{0});
    }

    void rowsGoThroughTheClipboard()
    {
        open("split layer:0 : batch by 2\nschedule 1f1b\n");
        go(0, TableColumn::Value);
        selectRows({0});
        key(Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("split layer:0 : batch by 2\n"));
        key(Qt::Key_X, Qt::ControlModifier);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        selectRows({0});
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(m_panel->pastePreview()->isOpen());
        QCOMPARE(text(), QStringLiteral("schedule 1f1b\n"));
        key(Qt::Key_Return);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nsplit layer:0 : batch by 2\n"));
        QCOMPARE(QString::fromStdString(m_workspace->history().undoWords()), QStringLiteral("paste 1 row"));
        QVERIFY(!m_panel->pastePreview()->isOpen());
        QGuiApplication::clipboard()->setText(
            QStringLiteral("layer:0\tplace\tdevices 0\nlayer:1\tplace\tdevices x\n"));
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY(m_panel->pastePreview()->isOpen());
        QTest::mouseClick(m_panel->pastePreview()->applyButton(), Qt::LeftButton);
        QTRY_COMPARE(text(),
            QStringLiteral("schedule 1f1b\nsplit layer:0 : batch by 2\nplace layer:0 : devices 0\nplace "
                           "layer:1 : devices x\n"));
        QVERIFY(m_panel->message().contains(
            QStringLiteral("Pasted 1 row from a spreadsheet; 1 line could not be read")));
        m_workspace->undo(); // one step
        const auto steps = m_workspace->history().steps().size();
        QGuiApplication::clipboard()->setText(QStringLiteral("Dear all,\nsee you tomorrow."));
        key(Qt::Key_V, Qt::ControlModifier);
        QTRY_COMPARE(text(), QStringLiteral("schedule 1f1b\nsplit layer:0 : batch by 2\n"));
        QCOMPARE(m_workspace->history().steps().size(), steps);
        QVERIFY2(m_panel->message().contains(QStringLiteral("nothing was changed")),
            qPrintable(m_panel->message()));
        QVERIFY(!m_panel->pastePreview()->isOpen());
        m_panel->copyPlan();
        QCOMPARE(QGuiApplication::clipboard()->text(), text());
    }

    void rowsAndOperatorsAreLinkedBothWays()
    {
        open("split layer:0 : batch by 2\nsplit layer:1 : batch by 2\nschedule 1f1b\n");
        const QSignalSpy changes(m_selection.get(), &SelectionModel::selectionChanged);
        go(1, TableColumn::Value);
        selectRows({1});
        QTRY_COMPARE_WITH_TIMEOUT(m_selection->selected(), selectedBy("layer:1"), kLong);
        QTRY_VERIFY(cell(1, TableColumn::On).data(TableListModel::ActingRole).toBool());
        QVERIFY(!cell(0, TableColumn::On).data(TableListModel::ActingRole).toBool());
        QCOMPARE(m_panel->list()->sourceRow(1), 1); // the row stays where it is
        const auto before = changes.count();
        // Selected elsewhere: the rows come first, and what is selected stays.
        const auto layer = selectedBy("layer:1");
        m_selection->select({layer.front()});
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->sourceRow(0), 1, kLong);
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{layer.front()});
        QCOMPARE(changes.count(), before + 1);
        // Backward operators belong to the rows of their forward ones.
        m_selection->select({m_workspace->model()->graph->at(selectedBy("layer:0").front()).mirror});
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->sourceRow(0), 0, kLong);
        m_panel->actingOnSelectionAction()->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->rowCount(), 2, kLong);
        m_panel->actingOnSelectionAction()->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->list()->rowCount(), 4, kLong);
        m_selection->clear();
        QTRY_VERIFY_WITH_TIMEOUT(m_panel->list()->isInTextOrder(), kLong);
        m_selection->setHovered(layer.front());
        QTRY_VERIFY_WITH_TIMEOUT(cell(1, TableColumn::On).data(TableListModel::HoverRole).toBool(), kLong);
        QVERIFY(!cell(0, TableColumn::On).data(TableListModel::HoverRole).toBool());
    }

    void aRowsPriceIsWhatSwitchingItOffGains()
    {
        open("schedule gpipe\n", kTiny);
        m_panel->prices()->setIdleMilliseconds(0);
        m_panel->prices()->setEnabled(true);
        const std::string rows = "mesh dp=4\nsplit all : batch over dp\n";
        m_workspace->setTableText(rows);
        const auto planned = [&](const std::string &text) {
            const auto &latest = m_workspace->latest();
            return latest && latest->final && latest->table.text() == text;
        };
        QTRY_VERIFY_WITH_TIMEOUT(planned(rows), kLong);
        QVERIFY(m_workspace->lastGood());
        const double with = m_workspace->lastGood()->summary.stepSeconds;
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->rows()->priceAt(1).state, RowPrice::State::Known, kLong);
        QCOMPARE(m_panel->rows()->priceAt(0).state, RowPrice::State::Needed); // the split runs over it
        QCOMPARE(cell(0, TableColumn::Price).data().toString(), QStringLiteral("binding · needed"));
        const double price = m_panel->rows()->priceAt(1).seconds;
        QVERIFY(price != 0);
        QVERIFY2(cell(1, TableColumn::Price)
                     .data()
                     .toString()
                     .startsWith(
                         price < 0 ? QStringLiteral("binding · saves ") : QStringLiteral("binding · costs ")),
            qPrintable(cell(1, TableColumn::Price).data().toString()));
        m_panel->prices()->setIdleMilliseconds(1'000'000);
        m_panel->rows()->setRowsEnabled({1}, false);
        const std::string without = "mesh dp=4\noff split all : batch over dp\n";
        QTRY_VERIFY_WITH_TIMEOUT(planned(without), kLong);
        QCOMPARE(with - m_workspace->lastGood()->summary.stepSeconds, price);
        QVERIFY2(cell(0, TableColumn::Price).data().toString().endsWith(QStringLiteral("1 edit ago")),
            qPrintable(cell(0, TableColumn::Price).data().toString()));
        m_panel->prices()->setEnabled(false);
        QCOMPARE(cell(0, TableColumn::Price).data().toString(), QString());
    }

    /// What the solver chose gives way: a row costs what the best plan without it is faster.
    void aRowBesideASearchIsPricedByTheSearchWithoutIt()
    {
        open("schedule gpipe\n", kTiny);
        m_panel->prices()->setEnabled(false);
        const auto found = [&](const std::string &rows) {
            QSignalSpy searched(m_workspace.get(), &Workspace::searched);
            m_workspace->setTableText(rows);
            m_workspace->searchBest();
            if (!QTest::qWaitFor([&] { return !searched.isEmpty(); }, kLong)
                || !m_workspace->latest()->search)
                return 0.0;
            return m_workspace->latest()->summary.stepSeconds;
        };
        const double best = found("# anything\n");
        const double slow = found("micro-batches 4\n");
        QVERIFY(best > 0 && slow > best);
        m_panel->prices()->setIdleMilliseconds(0);
        m_panel->prices()->setEnabled(true);
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->rows()->priceAt(0).state, RowPrice::State::Known, kLong);
        QCOMPARE(m_panel->rows()->priceAt(0).seconds, slow - best);
        for (int row = 1; row < m_panel->rows()->rowCount(); ++row) {
            QCOMPARE(m_panel->rows()->priceAt(row).state, RowPrice::State::Unknown);
            QCOMPARE(cell(row, TableColumn::Price).data().toString(), QStringLiteral("chosen"));
        }
        m_panel->prices()->setEnabled(false);
    }

    void aRowAboutTheModelIsPricedByTheModelWithoutIt()
    {
        open("schedule gpipe\n", kTiny);
        const auto planned = [&](const std::string &text) {
            const auto &latest = m_workspace->latest();
            return latest && latest->final && latest->isTimed() && latest->table.text() == text;
        };
        m_panel->prices()->setEnabled(false);
        m_workspace->setTableText("# as it is\n");
        QTRY_VERIFY_WITH_TIMEOUT(planned("# as it is\n"), kLong);
        const double usual = m_workspace->lastGood()->summary.stepSeconds;
        m_panel->prices()->setIdleMilliseconds(0);
        m_panel->prices()->setEnabled(true);
        const std::string rows = "dim batch = 64\n";
        m_workspace->setTableText(rows);
        QTRY_VERIFY_WITH_TIMEOUT(planned(rows), kLong);
        const double with = m_workspace->lastGood()->summary.stepSeconds;
        QVERIFY(with > usual);
        QTRY_COMPARE_WITH_TIMEOUT(m_panel->rows()->priceAt(0).state, RowPrice::State::Known, kLong);
        QCOMPARE(m_panel->rows()->priceAt(0).seconds, with - usual);
        m_panel->prices()->setEnabled(false);
    }

    void rowsOfTheSolverAreKeptWithOneClick()
    {
        open("micro-batches 2\nmesh dp=2 tp=2  @solver\nsplit all : batch over dp  @solver\n"
             "recompute layer:0 per layer  @solver\n");
        m_workspace->setSearchesAgain(false);
        const auto italic = [this](int row) {
            return cell(row, TableColumn::Value).data(ConstraintTableModel::ChosenRole).toBool();
        };
        QVERIFY(!italic(0) && italic(1) && italic(2) && italic(3));
        QCOMPARE(cell(1, TableColumn::Price).data().toString(), QStringLiteral("chosen"));
        const auto click = [this](int row) {
            const QRect rect = m_panel->grid()->visualRect(cell(row, TableColumn::Price));
            QTest::mouseClick(m_panel->grid()->viewport(), Qt::LeftButton, {},
                QPoint(
                    rect.right() - m_panel->grid()->fontMetrics().averageCharWidth() * 2, rect.center().y()));
        };
        click(3); // one row
        QCOMPARE(text(),
            QStringLiteral("micro-batches 2\nmesh dp=2 tp=2  @solver\nsplit all : batch over dp  @solver\n"
                           "recompute layer:0 per layer\n"));
        m_workspace->undo();
        QVERIFY(italic(3));
        click(2); // it is over the mesh, which comes with it
        QCOMPARE(text(),
            QStringLiteral("micro-batches 2\nmesh dp=2 tp=2\nsplit all : batch over dp\n"
                           "recompute layer:0 per layer  @solver\n"));
        m_workspace->undo();
        // Where half of the column is outside, the button is not.
        const QSize size = m_panel->size();
        const QRect price = m_panel->grid()->visualRect(cell(3, TableColumn::Price));
        QWidget *const view = m_panel->grid()->viewport();
        m_panel->resize(size.width() - view->width() + price.center().x(), size.height());
        QTRY_VERIFY(view->width() < price.right() - price.width() / 4);
        QTest::mouseClick(view, Qt::LeftButton, {},
            QPoint(
                view->width() - m_panel->grid()->fontMetrics().averageCharWidth() * 2, price.center().y()));
        QVERIFY(text().endsWith(QStringLiteral("recompute layer:0 per layer\n")));
        m_workspace->undo();
        m_panel->resize(size);
        auto *all = m_panel->findChild<QAction *>(QStringLiteral("rows.keepAll"));
        QVERIFY(all && all->isEnabled());
        QCOMPARE(all->iconText(), QStringLiteral("Keep 3 Grey Rows"));
        all->trigger();
        QVERIFY(!text().contains(QStringLiteral("@solver")));
        QVERIFY(!all->isEnabled());
        m_workspace->undo(); // one step
        QVERIFY(italic(1) && italic(2) && italic(3));
    }

    void actionsHaveNamesAndAreReachable()
    {
        open("schedule 1f1b\n");
        const auto actions = m_panel->actions();
        QVERIFY(actions.size() >= 20);
        for (const QAction *action : actions) {
            QVERIFY(!action->objectName().isEmpty());
            QVERIFY2(!action->text().isEmpty(), qPrintable(action->objectName()));
        }
        QVERIFY(actions.contains(m_panel->actingOnSelectionAction()));
        const auto widgets = m_panel->findChildren<QWidget *>();
        for (const QWidget *widget : widgets) {
            if (widget->focusPolicy() != Qt::NoFocus && widget->isVisible()
                && widget->parentWidget() == m_panel.get())
                QVERIFY2(!widget->accessibleName().isEmpty() || widget->inherits("QToolButton")
                        || widget->inherits("QStackedWidget"),
                    widget->metaObject()->className());
        }
    }
};

PLANLOOM_QTEST(TableRowsTest)
#include "table_rows_test.moc"
