// Tools of the canvas, orders moved by their arrows' ends, cones, conversions of a split, and pictures in
// tiles.

#include <QtTest/QtTest>

#include <QtGui/QImage>
#include <QtWidgets/QApplication>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSlider>

#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_cone_bar.h"
#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_line_editors.h"
#include "widgets/dag/dag_measure.h"
#include "widgets/dag/dag_still.h"
#include "widgets/dag/dag_view.h"

#include "engine/lowering/lower.h"
#include "engine/table/table_text.h"
#include "tests/qt_test.h"

#include <algorithm>
#include <cstring>

using namespace planloom;

/// Named, since classes of the test hold it.
struct PlannedCanvas {
    explicit PlannedCanvas(const char *rows = "", std::int32_t devices = 4)
    {
        graph = trainingStepOf(kGpt);
        host.context = designOf(graph, devices, rows);
        view.resize(1200, 900);
        view.setReducedMotion(true);
        view.setSelectionModel(&selection);
        view.setGraph(graph);
        view.setPlan(host.context->plan);
        view.setGestureHost(&host);
        view.show();
        view.activateWindow();
        view.setFocus();
    }
    OperatorId named(const std::string &name) const { return host.context->index().findOperator(name); }
    std::int32_t boxOf(const std::string &name) const
    {
        const auto picture = view.picture();
        return picture->visible.boxOfUnit[static_cast<std::size_t>(
            picture->outline->unitOfOperator[static_cast<std::size_t>(named(name).index)])];
    }
    QPoint middle(const std::string &name) const { return view.viewRect(boxOf(name)).center().toPoint(); }
    void press(QPoint at) { QTest::mousePress(&view, Qt::LeftButton, {}, at); }
    void move(QPoint at, Qt::MouseButtons held = Qt::LeftButton)
    {
        QMouseEvent event(
            QEvent::MouseMove, QPointF(at), view.mapToGlobal(QPointF(at)), Qt::NoButton, held, {});
        QApplication::sendEvent(&view, &event);
    }
    void release(QPoint at) { QTest::mouseRelease(&view, Qt::LeftButton, {}, at); }

    GraphSnapshot graph;
    FakeGestureHost host;
    SelectionModel selection;
    DagView view;
};

namespace {

/// Everything open, each copy shown, with layer 1's attention in the window's middle.
void open(PlannedCanvas &canvas)
{
    QTRY_VERIFY(canvas.view.isSettled() && canvas.view.picture());
    canvas.view.expandAll();
    QTRY_VERIFY(canvas.view.isSettled());
    canvas.view.showOperator(canvas.named("h.1.attn.k_attn"));
    QTRY_VERIFY(canvas.view.isSettled());
    canvas.view.setFocus();
}

constexpr const char *kOrder = "micro-batches 4\norder name:h.1.attn.k_attn before name:h.1.attn.q_attn\n";

} // namespace

class DagHandToolsTest : public QObject
{
    Q_OBJECT

private:
    /// Index of the one arrow there is.
    static void oneArrow(const PlannedCanvas &canvas)
    {
        QTRY_COMPARE(canvas.view.orders().size(), 1U);
        QVERIFY(canvas.view.gestures().orderArrow(0).length() > 1);
    }

private Q_SLOTS:
    void theArrowsEndIsDraggedToAnotherNode()
    {
        PlannedCanvas canvas(kOrder);
        open(canvas);
        oneArrow(canvas);
        const QPoint end = canvas.view.gestures().orderArrow(0).p2().toPoint();
        canvas.move(end, Qt::NoButton);
        QCOMPARE(canvas.view.cursor().shape(), Qt::OpenHandCursor);
        canvas.press(end);
        canvas.move(end + QPoint(0, 3));
        QVERIFY(canvas.host.previews.empty());
        canvas.move(canvas.middle("h.1.attn.v_attn"));
        QCOMPARE(canvas.host.previews.size(), 1U);
        canvas.view.grab();
        QVERIFY(
            canvas.view.gestures().tag().contains(QStringLiteral("h.1.attn.k_attn before h.1.attn.v_attn")));
        canvas.release(canvas.middle("h.1.attn.v_attn"));
        QCOMPARE(canvas.host.commits.size(), 1U);
        QCOMPARE(canvas.host.context->document.text(),
            std::string("micro-batches 4\norder name:h.1.attn.k_attn before name:h.1.attn.v_attn\n"));
        QVERIFY(!canvas.view.gestures().dragging());
    }

    void theOtherEndTooAndEscLeavesTheTable()
    {
        PlannedCanvas canvas(kOrder);
        open(canvas);
        oneArrow(canvas);
        const QPoint end = canvas.view.gestures().orderArrow(0).p1().toPoint();
        canvas.press(end);
        canvas.move(canvas.middle("h.1.attn.v_attn"));
        QVERIFY(canvas.view.gestures().gestures().proposal()->accepted());
        QTest::keyClick(&canvas.view, Qt::Key_Escape);
        QVERIFY(!canvas.view.gestures().dragging());
        canvas.release(canvas.middle("h.1.attn.v_attn"));
        QVERIFY(canvas.host.commits.empty());
        canvas.press(end);
        canvas.move(canvas.middle("h.1.attn.v_attn"));
        canvas.release(canvas.middle("h.1.attn.v_attn"));
        QCOMPARE(canvas.host.context->document.text(),
            std::string("micro-batches 4\norder name:h.1.attn.v_attn before name:h.1.attn.q_attn\n"));
    }

    void aCycleIsRefusedWithItsSentence()
    {
        PlannedCanvas canvas(kOrder);
        open(canvas);
        canvas.view.fitAll();
        oneArrow(canvas);
        QSignalSpy noted(&canvas.view, &DagView::noted);
        // An arrow's ends may lie close together from afar: zoomed in first, scrolled while in the hand.
        canvas.view.showOperator(canvas.named("h.1.attn.k_attn"));
        const QPoint end = canvas.view.gestures().orderArrow(0).p2().toPoint();
        canvas.press(end);
        canvas.move(end + QPoint(30, 30));
        const QPointF off =
            QRectF(canvas.view.rect()).center() - canvas.view.viewRect(canvas.boxOf("h.0.mlp.c_fc")).center();
        canvas.view.panBy(off.x(), off.y());
        canvas.move(canvas.middle("h.0.mlp.c_fc"));
        const auto proposal = canvas.view.gestures().gestures().proposal();
        QVERIFY(proposal && proposal->refusal);
        QVERIFY(!proposal->cycle.empty());
        QCOMPARE(canvas.view.cursor().shape(), Qt::ForbiddenCursor);
        canvas.view.grab();
        canvas.release(canvas.middle("h.0.mlp.c_fc"));
        QVERIFY(canvas.host.commits.empty());
        QVERIFY(noted.last().first().toString().contains(QStringLiteral("can't run before")));
    }

    void byKeyboardTheRowIsEditedInOneLine()
    {
        PlannedCanvas canvas(kOrder);
        open(canvas);
        oneArrow(canvas);
        QTest::keyClick(&canvas.view, Qt::Key_O);
        QCOMPARE(canvas.view.gestures().focusedOrder(), 0);
        canvas.view.grab();
        QTest::keyClick(&canvas.view, Qt::Key_F2);
        auto *editor = qobject_cast<OrderRowEditor *>(canvas.view.gestures().editor());
        QVERIFY(editor != nullptr);
        QCOMPARE(editor->first(), QStringLiteral("name:h.1.attn.k_attn"));
        auto *second = editor->findChildren<QLineEdit *>().back();
        second->setText(QStringLiteral("name:h.0.mlp.c_fc"));
        QVERIFY(editor->problem().contains(QStringLiteral("can't run before")));
        QTest::keyClick(second, Qt::Key_Return);
        QVERIFY(canvas.host.commits.empty());
        second->setText(QStringLiteral("layer:("));
        QVERIFY(!editor->problem().isEmpty());
        second->setText(QStringLiteral("name:h.1.attn.v_attn"));
        QVERIFY(editor->problem().isEmpty());
        QTest::keyClick(second, Qt::Key_Return);
        QCOMPARE(canvas.host.commits.size(), 1U);
        QVERIFY(canvas.view.gestures().editor() == nullptr);
        QCOMPARE(canvas.host.context->document.text(),
            std::string("micro-batches 4\norder name:h.1.attn.k_attn before name:h.1.attn.v_attn\n"));
        QTest::keyClick(&canvas.view, Qt::Key_Escape);
        QCOMPARE(canvas.view.gestures().focusedOrder(), -1);
    }

    void coneAndItsDepth()
    {
        PlannedCanvas canvas;
        open(canvas);
        const auto &outline = *canvas.view.picture()->outline;
        const OperatorId start = canvas.named("h.1.attn.k_attn");
        const std::int32_t unit = outline.unitOfOperator[static_cast<std::size_t>(start.index)];
        canvas.selection.select({start});
        canvas.view.selectCone(true);
        QTRY_VERIFY(canvas.view.isSettled());
        const auto units = [&] {
            std::vector<std::int32_t> result;
            for (const auto op : canvas.selection.selected())
                result.push_back(outline.unitOfOperator[static_cast<std::size_t>(op.index)]);
            std::sort(result.begin(), result.end());
            result.erase(std::unique(result.begin(), result.end()), result.end());
            return result;
        };
        QCOMPARE(units(), coneOf(outline, {unit}, true));
        QVERIFY(canvas.view.coneBar().isVisible());
        auto *slider = canvas.view.findChild<QSlider *>();
        QVERIFY(slider != nullptr && slider->focusPolicy() != Qt::NoFocus);
        QVERIFY(slider->maximum() > 3);
        slider->setFocus();
        QTest::keyClick(slider, Qt::Key_Home);
        QCOMPARE(units(), coneOf(outline, {unit}, true, 1));
        QTest::keyClick(slider, Qt::Key_Right);
        QCOMPARE(units(), coneOf(outline, {unit}, true, 2));
        canvas.view.setFocus();
        QTest::keyClick(&canvas.view, Qt::Key_BracketRight, Qt::AltModifier);
        QCOMPARE(units(), coneOf(outline, {unit}, true, 3));
        QTest::keyClick(&canvas.view, Qt::Key_BracketLeft, Qt::AltModifier);
        QCOMPARE(units(), coneOf(outline, {unit}, true, 2));
        QTest::keyClick(slider, Qt::Key_Escape); // closes the bar, keeps what is selected
        QVERIFY(!canvas.view.coneBar().isVisible());
        QCOMPARE(units(), coneOf(outline, {unit}, true, 2));
        canvas.view.selectCone(false);
        QTRY_VERIFY(canvas.view.coneBar().isVisible());
        canvas.selection.select({start}); // something else
        QVERIFY(!canvas.view.coneBar().isVisible());
    }

    void panToolMovesTheViewWhereverItBegins()
    {
        PlannedCanvas canvas;
        open(canvas);
        QSignalSpy changed(&canvas.view, &DagView::toolChanged);
        canvas.view.setTool(CanvasTool::Pan);
        QCOMPARE(changed.count(), 1);
        QCOMPARE(canvas.view.cursor().shape(), Qt::OpenHandCursor);
        const DagCamera before = canvas.view.camera();
        const auto selected = canvas.selection.selected();
        const QPoint from = canvas.middle("h.1.attn.q_attn");
        canvas.press(from);
        QCOMPARE(canvas.view.cursor().shape(), Qt::ClosedHandCursor);
        canvas.move(from + QPoint(40, 25));
        canvas.release(from + QPoint(40, 25));
        QCOMPARE(canvas.view.camera().x, before.x + 40);
        QCOMPARE(canvas.view.camera().y, before.y + 25);
        QCOMPARE(canvas.selection.selected(), selected);
        QVERIFY(canvas.host.commits.empty());
        QCOMPARE(canvas.view.cursor().shape(), Qt::OpenHandCursor);
        canvas.view.setTool(CanvasTool::Select);
        QCOMPARE(canvas.view.cursor().shape(), Qt::ArrowCursor);
    }

    void measureToolTellsThePath()
    {
        PlannedCanvas canvas;
        open(canvas);
        canvas.view.setTool(CanvasTool::Measure);
        QCOMPARE(canvas.view.cursor().shape(), Qt::CrossCursor);
        QSignalSpy measured(&canvas.view, &DagView::measured);
        const QPoint from = canvas.middle("h.1.attn.k_attn");
        canvas.press(from);
        canvas.move(canvas.middle("h.1.attn.attention"));
        QTRY_COMPARE(measured.count(), 1);
        canvas.release(canvas.middle("h.1.attn.attention"));
        canvas.view.grab();
        const auto &outline = *canvas.view.picture()->outline;
        const auto unitOf = [&](const char *name) {
            return outline.unitOfOperator[static_cast<std::size_t>(canvas.named(name).index)];
        };
        const auto direct =
            measurePath(outline, nullptr, {unitOf("h.1.attn.k_attn")}, {unitOf("h.1.attn.attention")});
        QVERIFY(direct.hops() > 0 && !direct.backwards && !direct.planned);
        QCOMPARE(canvas.view.measureText(), textOf(direct));
        const auto back =
            measurePath(outline, nullptr, {unitOf("h.1.attn.attention")}, {unitOf("h.1.attn.k_attn")});
        QVERIFY(back.backwards);
        QCOMPARE(back.hops(), direct.hops());
        QVERIFY(measurePath(outline, nullptr, {unitOf("h.1.attn.q_attn")}, {unitOf("h.1.attn.k_attn")})
                    .path.empty());
        QVERIFY(canvas.host.commits.empty());
        QTest::keyClick(&canvas.view, Qt::Key_Escape);
        QVERIFY(canvas.view.measureText().isEmpty());
        canvas.view.setTool(CanvasTool::Select);
        QTest::keyPress(&canvas.view, Qt::Key_M); // as long as it is held
        QCOMPARE(canvas.view.cursor().shape(), Qt::CrossCursor);
        QTest::keyRelease(&canvas.view, Qt::Key_M);
        QCOMPARE(canvas.view.cursor().shape(), Qt::ArrowCursor);
    }

    void conversionsAreThoseOfThePlan()
    {
        const auto graph = trainingStepOf(kGpt);
        const auto conversions = [&](const char *rows, const char *name) {
            const auto context = designOf(graph, 2, rows);
            const auto lowered = lower(*context->plan, context->cluster);
            if (!lowered)
                qFatal("%s", describe(lowered.error()).c_str());
            return conversionsAround(*lowered, context->index().findOperator(name));
        };
        // Whole on one device: everything is used as it was made.
        const auto whole = conversions("place all : devices 0\n", "h.0.mlp.c_proj");
        QVERIFY(!whole.empty());
        for (const auto &each : whole)
            QVERIFY(each.conversion == Conversion::None);
        // Cut along what it sums over: the output is a sum over devices.
        const auto cut =
            conversions("place all : devices 0,1\nsplit name:h.0.mlp.c_proj : k by 2\n", "h.0.mlp.c_proj");
        const auto output =
            std::find_if(cut.begin(), cut.end(), [](const TensorConversion &each) { return !each.input; });
        QVERIFY(output != cut.end());
        QVERIFY(output->conversion == Conversion::Communication);
        QVERIFY(output->bytes.count > 0);
        QVERIFY(textOf(*output).contains(QLatin1String(nameOf(output->kind))));
    }

    void tilesMakeTheSamePictureAsTheWhole()
    {
        PlannedCanvas canvas;
        open(canvas);
        canvas.selection.select({canvas.named("h.1.attn.k_attn"), canvas.named("h.1.attn.q_attn")});
        const auto whole = canvas.view.still(DagExtent::WholeModel, lightPalette());
        const auto some = canvas.view.still(DagExtent::Selection, lightPalette());
        QCOMPARE(whole->size(), canvas.view.wholeSize());
        QVERIFY(!some->isEmpty());
        QVERIFY(some->size().width() < whole->size().width());
        const QSize size = some->size().toSize();
        QImage one(size, QImage::Format_RGB32);
        {
            QPainter painter(&one);
            some->paintTile(painter, QRectF(QPointF(), QSizeF(size)));
        }
        QImage tiled(size, QImage::Format_RGB32);
        constexpr int kTile = 97;
        for (int y = 0; y < size.height(); y += kTile) {
            for (int x = 0; x < size.width(); x += kTile) {
                const QSize part(std::min(kTile, size.width() - x), std::min(kTile, size.height() - y));
                QImage tile(part, QImage::Format_RGB32);
                QPainter painter(&tile);
                some->paintTile(painter, QRectF(QPointF(x, y), QSizeF(part)));
                painter.end();
                for (int row = 0; row < part.height(); ++row)
                    std::memcpy(tiled.scanLine(y + row) + 4 * x, tile.constScanLine(row),
                        static_cast<std::size_t>(4 * part.width()));
            }
        }
        int different = 0;
        for (int y = 0; y < size.height(); ++y) {
            for (int x = 0; x < size.width(); ++x)
                different += one.pixel(x, y) != tiled.pixel(x, y) ? 1 : 0;
        }
        // Curves are cut into lines by what is in sight of them: single pixels of their edges may be a shade
        // apart.
        QVERIFY2(different <= size.width() * size.height() / 200, qPrintable(QString::number(different)));
        canvas.selection.clear();
        canvas.view.focusBox(-1);
        QVERIFY(canvas.view.still(DagExtent::Selection, lightPalette())->isEmpty());
    }
};

PLANLOOM_QTEST(DagHandToolsTest)
#include "dag_hand_tools_test.moc"
