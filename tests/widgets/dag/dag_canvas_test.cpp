#include <QtTest/QtTest>

#include <QtGui/QAction>
#include <QtGui/QPainter>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QToolButton>

#include "tests/qt_test.h"
#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_breadcrumbs.h"
#include "widgets/dag/dag_find_bar.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/dag/dag_view.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace planloom;

/// Named, since classes of the test hold it.
struct ShownCanvas {
    explicit ShownCanvas(const char *spec = kGpt)
        : ShownCanvas(trainingStepOf(spec))
    {
    }
    explicit ShownCanvas(GraphSnapshot shown)
        : graph(std::move(shown))
    {
        view.resize(1000, 700);
        view.setReducedMotion(true);
        view.setGraph(graph);
        view.show();
    }
    bool settled() const { return view.isSettled() && view.picture() != nullptr; }
    OperatorId named(const std::string &name) const
    {
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            if (graph->operators[i].name == name)
                return OperatorId{static_cast<std::int32_t>(i)};
        }
        return {};
    }
    std::size_t forwardSelected() const
    {
        const auto &selected = view.selectionModel()->selected();
        return static_cast<std::size_t>(std::count_if(selected.begin(), selected.end(),
            [this](OperatorId op) { return graph->at(op).direction == Direction::Forward; }));
    }
    void trigger(const char *name) const { view.findChild<QAction *>(QLatin1String(name))->trigger(); }

    GraphSnapshot graph;
    DagView view;
};

namespace {

/// A graph of operators without tensors' contents: edges by (from, to).
GraphSnapshot graphOf(std::int32_t operators, const std::vector<std::pair<std::int32_t, std::int32_t>> &edges)
{
    auto graph = std::make_shared<Graph>();
    graph->name = "nasty";
    for (std::int32_t i = 0; i < operators; ++i) {
        Tensor tensor;
        tensor.name = "t" + std::to_string(i);
        tensor.type.shape = {4};
        graph->tensors.push_back(tensor);
        Operator op;
        op.name = "op" + std::to_string(i);
        op.kind = OperatorKind::Relu;
        op.scope = ScopeId{0};
        op.outputs = {TensorId{i}};
        graph->operators.push_back(std::move(op));
    }
    for (const auto &[from, to] : edges)
        graph->operators[static_cast<std::size_t>(to)].inputs.push_back(TensorId{from});
    return graph;
}

} // namespace

class DagCanvasTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void similarAndConesAreSelectedByKeyboard()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        canvas.view.selectionModel()->select({canvas.named("h.2.mlp.c_fc")});
        QTest::keyClick(&canvas.view, Qt::Key_A, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(canvas.forwardSelected(), 4U);
        canvas.view.selectionModel()->select({canvas.named("h.2.mlp.c_fc")});
        QTest::keyClick(&canvas.view, Qt::Key_BracketRight, Qt::ShiftModifier);
        QVERIFY(canvas.view.selectionModel()->contains(canvas.named("h.3.attn.attention")));
        QVERIFY(!canvas.view.selectionModel()->contains(canvas.named("h.1.attn.attention")));
        canvas.view.selectionModel()->select({canvas.named("h.2.mlp.c_fc")});
        QTest::keyClick(&canvas.view, Qt::Key_BracketLeft, Qt::ShiftModifier);
        QVERIFY(canvas.view.selectionModel()->contains(canvas.named("h.1.attn.attention")));
        const auto before = canvas.view.selectionModel()->selected().size();
        QTest::keyClick(&canvas.view, Qt::Key_I, Qt::ControlModifier);
        QCOMPARE(canvas.view.selectionModel()->selected().size(), canvas.graph->operators.size() - before);
    }

    void aHundredStepsAlongEdges()
    {
        std::vector<std::pair<std::int32_t, std::int32_t>> chain;
        for (std::int32_t i = 1; i < 150; ++i)
            chain.emplace_back(i - 1, i);
        ShownCanvas canvas(graphOf(150, chain));
        QTRY_VERIFY(canvas.settled());
        canvas.view.expandAll();
        QTRY_VERIFY(canvas.settled());
        canvas.view.showOperator(OperatorId{0});
        for (int step = 0; step < 100; ++step)
            QTest::keyClick(&canvas.view, Qt::Key_BracketRight);
        QTest::keyClick(&canvas.view, Qt::Key_Return);
        QCOMPARE(canvas.view.selectionModel()->selected(), (std::vector{OperatorId{100}}));
    }

    void backAndForwardComeToWhereOneWas()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        const auto first = canvas.view.camera();
        const auto open = canvas.view.picture()->state;
        canvas.view.showOperator(canvas.named("h.3.attn.attention"));
        QTRY_VERIFY(canvas.settled());
        const auto there = canvas.view.picture()->state;
        QVERIFY(!(there == open) || !(canvas.view.camera() == first));
        QTest::keyClick(&canvas.view, Qt::Key_Left, Qt::AltModifier);
        QTRY_VERIFY(canvas.settled());
        QVERIFY(canvas.view.picture()->state == open);
        QVERIFY(std::abs(canvas.view.camera().x - first.x) < 1e-6
            && std::abs(canvas.view.camera().y - first.y) < 1e-6);
        QTest::keyClick(&canvas.view, Qt::Key_Right, Qt::AltModifier);
        QTRY_VERIFY(canvas.settled());
        QVERIFY(canvas.view.picture()->state == there);
    }

    void bookmarksAndTheViewsStateSurvive()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        QSignalSpy changed(&canvas.view, &DagView::bookmarksChanged);
        canvas.view.expandAll();
        QTRY_VERIFY(canvas.settled());
        canvas.view.zoomBy(3);
        canvas.view.panBy(-40, -25);
        const auto camera = canvas.view.camera();
        const auto state = canvas.view.picture()->state;
        QTest::keyClick(&canvas.view, Qt::Key_M, Qt::ControlModifier);
        QCOMPARE(changed.count(), 1);
        const QStringList kept = changed.front().front().toStringList();
        QCOMPARE(kept.size(), 1);
        canvas.view.collapseAll();
        QTRY_VERIFY(canvas.settled());
        QTest::keyClick(&canvas.view, Qt::Key_1, Qt::AltModifier);
        QTRY_VERIFY(canvas.settled());
        QVERIFY(canvas.view.picture()->state == state);
        QVERIFY(std::abs(canvas.view.camera().x - camera.x) < 1e-6);
        // In another window, with another mode, before its model is even open.
        DagView other;
        other.resize(1000, 700);
        other.setReducedMotion(true);
        other.setMode(DagMode::ForwardOnly);
        other.restoreCamera(kept.front());
        other.setGraph(canvas.graph);
        other.show();
        QTRY_VERIFY(other.isSettled() && other.picture());
        QCOMPARE(other.mode(), DagMode::Folded);
        QVERIFY(other.picture()->state == state);
        QVERIFY(std::abs(other.camera().scale - camera.scale) < 1e-9);
        QCOMPARE(modeOfViewState(other.cameraState()), std::optional(DagMode::Folded));
        other.restoreCamera(QStringLiteral("nonsense"));
        QVERIFY(other.picture()->state == state);
        QSignalSpy notes(&other, &DagView::noted);
        other.goToBookmark(7);
        QCOMPARE(notes.count(), 1);
    }

    void findUnderstandsTheSelectorsOfRows()
    {
        ShownCanvas canvas;
        FakeGestureHost host;
        host.context = designOf(canvas.graph, 2);
        canvas.view.setGestureHost(&host);
        QTRY_VERIFY(canvas.settled());
        canvas.view.openFind();
        auto *edit = canvas.view.findChild<DagFindBar *>()->findChild<QLineEdit *>();
        QSignalSpy searched(&canvas.view, &DagView::searched);
        edit->setText(QStringLiteral("kind:Attention & layer:1-2 & forward"));
        QTRY_VERIFY(canvas.settled());
        QCOMPARE(canvas.view.matches().size(), 2U);
        QVERIFY(!searched.isEmpty());
        QSignalSpy rows(&canvas.view, &DagView::rowAsked);
        canvas.trigger("dag.rowFromMatches");
        QCOMPARE(rows.count(), 1);
        const auto selector = parseSelector(rows.front().front().toString().toStdString());
        QVERIFY(selector);
        auto found = host.context->index().select(*selector);
        std::erase_if(
            found, [&](OperatorId op) { return canvas.graph->at(op).direction != Direction::Forward; });
        QVERIFY(
            found == (std::vector{canvas.named("h.1.attn.attention"), canvas.named("h.2.attn.attention")}));
        canvas.trigger("dag.selectMatches");
        QCOMPARE(canvas.forwardSelected(), 2U);
        edit->setText(QStringLiteral("kind:"));
        QTRY_VERIFY(canvas.settled());
        QVERIFY(canvas.view.matches().empty());
        QVERIFY(!searched.back().at(1).toString().isEmpty());
    }

    void everyColouringShowsAndItsLegendFilters()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        const std::size_t count = canvas.graph->operators.size();
        canvas.view.setPlan(
            designOf(canvas.graph, 2, "place layer:0-1 : devices 0\nplace layer:2-3 : devices 1\n")->plan);
        std::vector<double> values(count);
        for (std::size_t i = 0; i < count; ++i)
            values[i] = i % 7 == 0 ? std::nan("") : 0.5 + 0.01 * static_cast<double>(i % 100);
        for (const auto colouring : {ColourBy::Communication, ColourBy::Slack, ColourBy::Error})
            canvas.view.setValues(colouring, values);
        std::vector<std::uint8_t> kinds(count);
        for (std::size_t i = 0; i < count; ++i)
            kinds[i] = static_cast<std::uint8_t>(i % 5);
        canvas.view.setDifference(kinds);
        for (int i = 0; i < kColourByCount; ++i) {
            const auto colouring = static_cast<ColourBy>(i);
            if (colouring == ColourBy::Time)
                canvas.view.setTimes(values);
            canvas.view.setColourBy(colouring);
            canvas.view.grab();
            QVERIFY2(!canvas.view.colours().legend.empty(), qPrintable(nameOf(colouring)));
            QCOMPARE(canvas.view.colours().scale, hasScale(colouring));
        }
        canvas.view.setColourBy(ColourBy::Device);
        canvas.view.grab();
        const QRectF entry = canvas.view.legendRect(0);
        QVERIFY(!entry.isEmpty());
        QTest::mouseClick(&canvas.view, Qt::LeftButton, {}, entry.center().toPoint());
        QCOMPARE(canvas.view.legendFilter().size(), 1U);
        const auto &marks = canvas.view.marks();
        for (std::size_t box = 1; box < marks.size(); ++box) {
            const auto &shares = canvas.view.colours().boxes[box].shares;
            const bool shown = std::any_of(shares.begin(), shares.end(),
                [&](const ColourShare &share) { return canvas.view.legendFilter().contains(share.key); });
            if (!canvas.view.picture()->visible.boxes[box].frame)
                QCOMPARE((marks[box] & kMarkDimmed) != 0, !shown);
        }
        QTest::mouseClick(&canvas.view, Qt::LeftButton, {}, entry.center().toPoint());
        QVERIFY(canvas.view.legendFilter().empty());
    }

    void whatRowsInConflictAreAboutIsMarked()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        const QImage before = canvas.view.grab().toImage();
        canvas.view.setConflicts({OperatorId{3}});
        const auto isMarked = [](std::uint8_t mark) { return (mark & kMarkConflict) != 0; };
        const auto marks = canvas.view.marks();
        QCOMPARE(std::count_if(marks.begin(), marks.end(), isMarked), 1);
        QVERIFY(canvas.view.grab().toImage() != before);
        canvas.view.setConflicts({});
        QCOMPARE(canvas.view.grab().toImage(), before);
    }

    void aGroupsValueIsThatOfItsMembers()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        std::vector<double> ones(canvas.graph->operators.size(), 1);
        OperatorFacts facts;
        facts.values[ColourBy::Communication] = ones;
        const auto &picture = *canvas.view.picture();
        const auto colours =
            coloursOf(*picture.outline, picture.visible, facts, ColourBy::Communication, lightPalette());
        for (std::size_t box = 1; box < picture.visible.boxes.size(); ++box) {
            const auto members =
                operatorsOf(*picture.outline, picture.visible, static_cast<std::int32_t>(box)).size();
            QCOMPARE(
                colours.boxes[box].badge, valueText(ColourBy::Communication, static_cast<double>(members)));
        }
    }

    void aDeviatingCopyIsCountedAndOrdersAreShown()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        canvas.view.setPlan(designOf(canvas.graph, 2,
            "place !name:h.2.mlp.c_fc : devices 0\nplace name:h.2.mlp.c_fc : devices 1\norder "
            "name:h.*.attn.attention before name:h.*.mlp.c_fc\n")
                                ->plan);
        canvas.view.expandAll();
        QTRY_VERIFY(canvas.settled());
        for (std::size_t item = 0; item < canvas.view.picture()->outline->items.size(); ++item) {
            if (canvas.view.picture()->outline->items[item].kind == OutlineItem::Kind::Stack)
                canvas.view.toggleCopies(static_cast<std::int32_t>(item));
        }
        QTRY_VERIFY(canvas.settled());
        // Rows place all operators, and a backward one as its forward.
        for (std::size_t box = 1; box < canvas.view.picture()->visible.boxes.size(); ++box) {
            const bool frame = canvas.view.picture()->visible.boxes[box].frame;
            QCOMPARE(canvas.view.colours().boxes[box].decidedBy, frame ? DecidedBy::Default : DecidedBy::Row);
        }
        int deviating = 0;
        for (std::size_t box = 1; box < canvas.view.picture()->visible.boxes.size(); ++box) {
            if (!canvas.view.picture()->visible.boxes[box].frame)
                deviating += canvas.view.colours().boxes[box].deviating;
        }
        QVERIFY(deviating >= 1);
        QVERIFY(!canvas.view.orders().empty());
        QVERIFY(!canvas.view.grab().isNull());
    }

    void groupsAreMovedByHandAndComeBack()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        std::int32_t group = -1;
        for (std::size_t box = 1; box < canvas.view.picture()->visible.boxes.size(); ++box) {
            if (canvas.view.picture()->outline->at(canvas.view.picture()->visible.boxes[box].item).kind
                != OutlineItem::Kind::Operator)
                group = static_cast<std::int32_t>(box);
        }
        QVERIFY(group > 0);
        const std::int32_t item = canvas.view.picture()->visible.at(group).item;
        const QRectF before = canvas.view.viewRect(group);
        QSignalSpy nudges(&canvas.view, &DagView::nudged);
        const QPoint from(static_cast<int>(before.center().x()), static_cast<int>(before.top()) + 6);
        const auto both = Qt::ControlModifier | Qt::ShiftModifier;
        QTest::mousePress(&canvas.view, Qt::LeftButton, both, from);
        QTest::mouseMove(&canvas.view, from + QPoint(50, 30));
        QTest::mouseRelease(&canvas.view, Qt::LeftButton, both, from + QPoint(50, 30));
        QTRY_VERIFY(canvas.settled());
        QVERIFY(!nudges.isEmpty());
        const QRectF after = canvas.view.viewRect(canvas.view.picture()->visible.boxOfItem(item));
        QVERIFY(std::abs(after.x() - before.x() - 50) < 2 && std::abs(after.y() - before.y() - 30) < 2);
        const auto offset = nudges.back();
        DagView other;
        other.resize(1000, 700);
        other.setReducedMotion(true);
        other.setGraph(canvas.graph);
        other.show();
        QTRY_VERIFY(other.isSettled() && other.picture());
        other.setNudges(
            {{offset[0].toString().toStdString(), QPointF(offset[1].toDouble(), offset[2].toDouble())}});
        QTRY_VERIFY(other.isSettled());
        QVERIFY(other.picture()->state.nudges.contains(item));
        canvas.view.focusBox(-1);
        canvas.view.relayoutHere();
        QTRY_VERIFY(canvas.settled());
        QVERIFY(canvas.view.picture()->state.nudges.empty());
        QCOMPARE(nudges.back()[1].toDouble(), 0.0);
    }

    void breadcrumbsAreButtons()
    {
        ShownCanvas canvas;
        DagBreadcrumbs crumbs(&canvas.view);
        crumbs.show();
        QTRY_VERIFY(canvas.settled());
        canvas.view.showOperator(canvas.named("h.3.attn.attention"));
        QTRY_VERIFY(canvas.settled());
        canvas.view.zoomBy(3);
        QVERIFY(crumbs.labels().size() >= 2);
        QCOMPARE(crumbs.labels(), canvas.view.breadcrumbs());
        const double close = canvas.view.camera().scale;
        QTest::mouseClick(crumbs.findChildren<QToolButton *>().front(), Qt::LeftButton);
        QVERIFY(canvas.view.camera().scale < close);
        QCOMPARE(crumbs.labels(), canvas.view.breadcrumbs());
        crumbs.setModelName(QStringLiteral("My model"));
        QCOMPARE(crumbs.labels().front(), QStringLiteral("My model"));
    }

    void aClickOnAnEdgeGoesToItsOtherEnd()
    {
        ShownCanvas canvas(graphOf(2, {{0, 1}}));
        QTRY_VERIFY(canvas.settled());
        const auto &scene = canvas.view.picture()->scene;
        QVERIFY(!scene.paths.empty());
        const auto &path = scene.paths.front();
        const auto &a = scene.points[path.begin];
        const auto &b = scene.points[path.end - 1];
        const double share = 0.3; // nearer to its start
        const QPoint on(static_cast<int>(canvas.view.camera().viewX(a.x + (b.x - a.x) * share)),
            static_cast<int>(canvas.view.camera().viewY(a.y + (b.y - a.y) * share)));
        QTest::mouseClick(&canvas.view, Qt::LeftButton, {}, on);
        QCOMPARE(canvas.view.selectionModel()->selected(), (std::vector{OperatorId{1}}));
    }

    void theWholeModelIsPaintedAnywhereAtAnySize()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        for (const Palette *palette : {&lightPalette(), &darkPalette()}) {
            for (const bool whole : {false, true}) {
                QImage image(1600, 1200, QImage::Format_ARGB32_Premultiplied);
                image.fill(Qt::magenta);
                QPainter painter(&image);
                canvas.view.render(painter, QRectF(100, 50, 1400, 1100), whole, *palette);
                painter.end();
                QCOMPARE(image.pixelColor(10, 10), QColor(Qt::magenta)); // nothing beside the target
                QCOMPARE(image.pixelColor(103, 53), palette->canvas);
                int others = 0;
                for (int y = 50; y < 1150; y += 3) {
                    for (int x = 100; x < 1500; x += 3)
                        others += image.pixelColor(x, y) != palette->canvas ? 1 : 0;
                }
                QVERIFY(others > 500);
            }
        }
    }

    void layoutsMorphUnlessMotionIsReduced()
    {
        ShownCanvas canvas;
        QTRY_VERIFY(canvas.settled());
        canvas.view.setReducedMotion(false);
        canvas.view.collapseAll();
        QTRY_VERIFY(canvas.settled());
        std::int32_t stack = -1;
        for (std::size_t box = 1; box < canvas.view.picture()->visible.boxes.size(); ++box) {
            if (canvas.view.picture()->outline->at(canvas.view.picture()->visible.boxes[box].item).kind
                == OutlineItem::Kind::Stack)
                stack = static_cast<std::int32_t>(box);
        }
        QVERIFY(stack > 0);
        const std::int32_t item = canvas.view.picture()->visible.at(stack).item;
        const QRectF before = canvas.view.viewRect(stack);
        const QPointF pointer = before.center();
        QSignalSpy pictures(&canvas.view, &DagView::pictureChanged);
        canvas.view.toggleItem(item, pointer);
        QTRY_COMPARE(pictures.count(), 1);
        QVERIFY(!canvas.view.isSettled()); // on its way
        QVERIFY(!canvas.view.grab().isNull());
        QTRY_VERIFY(canvas.settled());
        QVERIFY(canvas.view.viewRect(canvas.view.picture()->visible.boxOfItem(item)).contains(pointer));
    }

    void nastyGraphsAreShown_data()
    {
        QTest::addColumn<int>("kind");
        QTest::newRow("nothing") << 0;
        QTest::newRow("one") << 1;
        QTest::newRow("a star of 5,000") << 2;
        QTest::newRow("200 parallel chains") << 3;
        QTest::newRow("an edge across everything") << 4;
        QTest::newRow("train 1024") << 5;
    }

    void nastyGraphsAreShown()
    {
        QFETCH(int, kind);
        std::vector<std::pair<std::int32_t, std::int32_t>> edges;
        std::int32_t count = 0;
        if (kind == 1)
            count = 1;
        if (kind == 2) {
            count = 5001;
            for (std::int32_t i = 1; i < count; ++i)
                edges.emplace_back(0, i);
        }
        if (kind == 3) {
            count = 200 * 20;
            for (std::int32_t i = 0; i < count; ++i) {
                if (i % 20 != 0)
                    edges.emplace_back(i - 1, i);
            }
        }
        if (kind == 4) { // a chain long enough that its first value crosses 40,000 ranks
            count = 40'001;
            for (std::int32_t i = 1; i < count; ++i)
                edges.emplace_back(i - 1, i);
            edges.emplace_back(0, count - 1);
        }
        if (kind == 5) { // forward and backward of a long chain, with every activation kept
            count = 2048;
            for (std::int32_t i = 1; i < count; ++i)
                edges.emplace_back(i - 1, i);
            for (std::int32_t i = 0; i < 1024; ++i)
                edges.emplace_back(i, count - 1 - i);
        }
        const auto graph = graphOf(count, edges);
        std::vector<SceneRect> first;
        for (int round = 0; round < 2; ++round) {
            ShownCanvas canvas(graph);
            QTRY_VERIFY_WITH_TIMEOUT(canvas.settled(), 20000);
            QVERIFY(!canvas.view.grab().isNull());
            canvas.view.expandAll();
            QTRY_VERIFY_WITH_TIMEOUT(canvas.settled(), 20000);
            QVERIFY(!canvas.view.grab().isNull());
            for (const int key : {Qt::Key_Down, Qt::Key_BracketRight, Qt::Key_E, Qt::Key_F, Qt::Key_Home})
                QTest::keyClick(&canvas.view, static_cast<Qt::Key>(key));
            QTRY_VERIFY_WITH_TIMEOUT(canvas.settled(), 20000);
            const auto &rects = canvas.view.picture()->scene.rects;
            if (round == 0)
                first = rects;
            else
                QVERIFY(rects == first); // the same input, the same layout
        }
    }
};

PLANLOOM_QTEST(DagCanvasTest)
#include "dag_canvas_test.moc"
