#pragma once

#include <QtTest/QtTest>

#include <QtWidgets/QApplication>

#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_view.h"

#include <string>
#include <vector>

namespace planloom {

constexpr const char *kName = "h.0.mlp.c_fc";

/// Everything open but the stack's copies, zoomed so that chips and handles have room.
struct Stage {
    explicit Stage(const char *rows = "", std::int32_t devices = 8)
    {
        graph = trainingStepOf(kGpt);
        host.context = designOf(graph, devices, rows);
        view.resize(1000, 800);
        view.setSelectionModel(&selection);
        view.setGraph(graph);
        view.setGestureHost(&host);
        view.show();
        view.activateWindow();
        view.setFocus();
    }
    bool settled() const { return view.isSettled() && view.picture() != nullptr; }

    OperatorId named(const std::string &name) const { return host.context->index().findOperator(name); }
    std::int32_t boxOf(const std::string &name) const
    {
        const auto picture = view.picture();
        const auto unit = picture->outline->unitOfOperator[static_cast<std::size_t>(named(name).index)];
        return unit < 0 ? -1 : picture->visible.boxOfUnit[static_cast<std::size_t>(unit)];
    }
    QPoint middle(std::int32_t box) const { return view.viewRect(box).center().toPoint(); }
    void click(std::int32_t box) { QTest::mouseClick(&view, Qt::LeftButton, {}, middle(box)); }
    QPoint chip(const std::string &label, bool output) const
    {
        const auto &chips = view.gestures().chips();
        for (std::size_t i = 0; i < chips.size(); ++i) {
            if (chips[i].label == label && chips[i].output == output)
                return view.gestures().chipRect(static_cast<std::int32_t>(i)).center().toPoint();
        }
        qFatal("there is no chip %s", label.c_str());
    }
    void press(QPoint at, Qt::KeyboardModifiers held = {})
    {
        QTest::mousePress(&view, Qt::LeftButton, held, at);
    }
    void move(QPoint at, Qt::KeyboardModifiers held = {})
    {
        QMouseEvent event(QEvent::MouseMove, QPointF(at), view.mapToGlobal(QPointF(at)), Qt::NoButton,
            Qt::LeftButton, held);
        QApplication::sendEvent(&view, &event);
    }
    /// Presses in the middle of a box and drags it as far as it takes to be lifted.
    void lift(std::int32_t box)
    {
        press(middle(box));
        move(middle(box) + QPoint(0, 20));
    }
    void release(QPoint at, Qt::KeyboardModifiers held = {})
    {
        QTest::mouseRelease(&view, Qt::LeftButton, held, at);
    }
    const DagGestures &gesture() const { return view.gestures().gestures(); }
    std::vector<OperatorId> copiesOf(const std::string &suffix) const
    {
        std::vector<OperatorId> result;
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            const auto &op = graph->operators[i];
            if (op.direction == Direction::Forward && op.name.size() > suffix.size()
                && op.name.compare(op.name.size() - suffix.size(), suffix.size(), suffix) == 0)
                result.push_back(OperatorId{static_cast<std::int32_t>(i)});
        }
        return result;
    }
    /// The row that says what the last gesture was; others may stand behind it for what it does not speak of.
    Row written() const { return TableDocument(host.commits.back().rows.front()).table().rows.front(); }

    GraphSnapshot graph;
    FakeGestureHost host;
    SelectionModel selection;
    DagView view;
};

/// One copy of the layers stands for all, everything inside is open.
inline void openOneLayer(Stage &stage)
{
    QTRY_VERIFY(stage.settled());
    stage.view.expandAll();
    QTRY_VERIFY(stage.view.isSettled());
    const auto picture = stage.view.picture();
    for (std::size_t item = 0; item < picture->outline->items.size(); ++item) {
        if (picture->outline->items[item].kind == OutlineItem::Kind::Stack)
            stage.view.toggleCopies(static_cast<std::int32_t>(item));
    }
    QTRY_VERIFY(stage.view.isSettled());
    stage.view.fitAll();
}

/// Zooms in on an operator and selects its box.
inline std::int32_t select(Stage &stage, const std::string &name)
{
    stage.view.showOperator(stage.named(name));
    const std::int32_t box = stage.boxOf(name);
    stage.view.zoomBy(1.0 / stage.view.camera().scale);
    const QPointF off = QRectF(stage.view.rect()).center() - stage.view.viewRect(box).center();
    stage.view.panBy(off.x(), off.y());
    stage.click(box);
    return box;
}

/// Nothing was written, nothing is shown.
inline void expectNothing(const Stage &stage, std::size_t commits = 0)
{
    QCOMPARE(stage.host.commits.size(), commits);
    QVERIFY(stage.host.shown == nullptr);
    QVERIFY(!stage.gesture().active());
    QVERIFY(!stage.view.gestures().dragging());
    QVERIFY(stage.view.gestures().editor() == nullptr);
}

} // namespace planloom
