#pragma once

#include <QtCore/QObject>
#include <QtGui/QMouseEvent>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>

#include "tests/widgets/timeline/gesture_host_for_tests.h"
#include "tests/widgets/timeline/places_for_tests.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <memory>
#include <string>

namespace planloom {

/// A timeline with a host that writes down what it is asked, and a hand to work with.
class TimelineHandsForTests : public QObject
{
protected:
    static constexpr std::int32_t kDevices = 2;

    void openModels()
    {
        auto opened =
            openModel({"zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8&fused=0", {}, {}}, {});
        QVERIFY2(opened, opened ? "" : opened.error().message.c_str());
        m_model = *opened;
        m_pipeline = planned(m_model, {}, "pipeline:micro-batches=4,schedule=1f1b", kDevices);
        QVERIFY(m_pipeline);
        m_single = planned(m_model, {}, "single", kDevices);
        QVERIFY(m_single);
    }

    void close()
    {
        m_view.reset();
        m_host.reset();
        m_selection.reset();
    }

    void show(const PlanUpdateSnapshot &update) { showOn(update, kDevices); }

    void showOn(const PlanUpdateSnapshot &update, std::int32_t devices)
    {
        QVERIFY(update);
        close();
        m_scene = update->scene;
        m_selection = std::make_unique<SelectionModel>();
        m_host = std::make_unique<RecordingHost>(m_model, update, devices);
        m_view = std::make_unique<TimelineView>(m_selection.get());
        m_view->resize(1400, 520);
        m_view->setScene(m_scene);
        m_view->setGestureHost(m_host.get());
        for (const DeviceLane &lane : m_scene->lanes)
            m_view->setExpanded(lane.symmetryClass, true);
        m_view->show();
        m_view->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_view.get()));
        m_view->setFocus();
        QVERIFY(m_view->hasFocus());
    }

    OperatorId forward(OperatorId op) const
    {
        const Operator &of = m_model->graph->at(op);
        return of.direction == Direction::Backward ? of.mirror : op;
    }

    /// A forward compute span of a lane's first block that can be seen alone; zooms in until there is one.
    std::size_t wideSpan(std::int32_t lane, std::size_t from = 0)
    {
        for (int tries = 0; tries < 40; ++tries) {
            const auto &blocks = m_scene->lanes[static_cast<std::size_t>(lane)].blocks;
            const TimelineBlock &block = *std::find_if(blocks.begin(), blocks.end(),
                [](const TimelineBlock &each) { return each.kind == SegmentKind::Forward; });
            for (std::size_t row = std::max(block.rows.begin, from); row < block.rows.end; ++row) {
                const auto rect = m_view->rectOf(row);
                const OperatorId op = m_scene->operatorOf(row);
                if (rect && rect->width() >= 14 && op.valid())
                    return row;
            }
            QTest::keyClick(m_view.get(), Qt::Key_W);
            m_view->setAxis({static_cast<double>(block.begin), m_view->axis().nanosecondsPerPixel});
        }
        qFatal("no span is wide enough");
        return 0;
    }

    /// A product (that has dimensions to split), likewise.
    std::size_t productSpan(std::int32_t lane)
    {
        std::size_t row = wideSpan(lane);
        while (m_model->graph->at(m_scene->operatorOf(row)).kind != OperatorKind::Linear)
            row = wideSpan(lane, row + 1);
        return row;
    }

    std::size_t rowOf(const TimelineScene &scene, OperatorId op, std::int32_t device) const
    {
        for (const std::size_t row : rowsOf(scene, {op})) {
            if (scene.timeline->spans.device[row] == device
                && scene.timeline->spans.queue[row] == QueueKind::Compute)
                return row;
        }
        return 0;
    }

    void zoomTo(std::size_t row) { zoomToSpan(*m_view, row); }
    int laneMiddle(std::int32_t lane) const { return planloom::laneMiddle(*m_view, lane); }

    void press(QPoint at, Qt::KeyboardModifiers modifiers = {})
    {
        QTest::mousePress(m_view->viewport(), Qt::LeftButton, modifiers, at);
    }
    void moveTo(QPoint at, Qt::KeyboardModifiers modifiers = {})
    {
        QMouseEvent event(QEvent::MouseMove, at, m_view->viewport()->mapToGlobal(at), Qt::NoButton,
            Qt::LeftButton, modifiers);
        QApplication::sendEvent(m_view->viewport(), &event);
    }
    void release(QPoint at, Qt::KeyboardModifiers modifiers = {})
    {
        QTest::mouseRelease(m_view->viewport(), Qt::LeftButton, modifiers, at);
    }
    void drag(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {})
    {
        press(from, modifiers);
        moveTo(from + (to - from) / 4, modifiers);
        moveTo((from + to) / 2, modifiers);
        moveTo(to, modifiers);
    }

    bool hasRow(const char *word) const { return m_host->text().find(word) != std::string::npos; }

    void nothingIsLeft()
    {
        QVERIFY(!m_view->gestures().dragging());
        QVERIFY(!m_host->currentPreview());
        QVERIFY(m_host->commits.empty());
    }

    ModelSnapshot m_model;
    PlanUpdateSnapshot m_pipeline;
    PlanUpdateSnapshot m_single;
    TimelineSceneSnapshot m_scene;
    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<RecordingHost> m_host;
    std::unique_ptr<TimelineView> m_view;
};

} // namespace planloom
