// Every gesture of the DAG, by mouse and by keyboard, in the whole window with its engine: the row it writes,
// the plan that follows, Esc at every stage, undo and redo.

#include <QtCore/QObject>
#include <QtGui/QWheelEvent>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSpinBox>

#include "tests/e2e/gesture_walk.h"
#include "tests/qt_test.h"
#include "widgets/dag/dag_line_editors.h"

using namespace planloom;

namespace {

constexpr const char *kOrder = "order name:h.0.attn.k_attn before name:h.0.attn.q_attn\n";
constexpr const char *kAttention = "h.0.attn.attention";

} // namespace

class DagHandsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aChipIsPulled() { pulling({}, Qt::NoModifier, SplitKind::Dimension, QStringLiteral("split ")); }
    void aChipIsPulledWithShift()
    {
        pulling({}, Qt::ShiftModifier, SplitKind::Replicate, QStringLiteral("replicate "));
    }
    void aChipIsPulledWithControl()
    {
        pulling({}, Qt::ControlModifier, SplitKind::Value, QStringLiteral("value by"));
    }

    void aChipIsPulledAndTheWheelCounts()
    {
        pulling(
            [this](QPoint place) {
                QWheelEvent wheel(QPointF(place), m_at.dag()->mapToGlobal(QPointF(place)), {}, QPoint(0, 120),
                    Qt::LeftButton, {}, Qt::NoScrollPhase, false);
                QApplication::sendEvent(m_at.dag(), &wheel);
            },
            {}, SplitKind::Dimension, QStringLiteral("split "));
    }

    void aChipIsPulledAndADigitCounts()
    {
        pulling([this](QPoint) { QTest::keyClick(m_at.dag(), Qt::Key_8); }, {}, SplitKind::Dimension,
            QStringLiteral("by 8"));
    }

    void aChipIsPushedInAndThePartsAreOneAgain()
    {
        open(4, {}, "split name:*.mlp.c_fc : n by 4\n");
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            const std::int32_t chip = freeChip(m_at);
            m_dimension = m_at.dag()->gestures().chips()[static_cast<std::size_t>(chip)].dimension;
            if (splitsOf(kName).back().dimension != m_dimension)
                QTest::qFail("it is not split along the chip", __FILE__, __LINE__);
            const QPoint start = chipAt(m_at, chip);
            const QPoint inside = middleOf(m_at, boxOf(m_at, kName));
            byMouse(hand, start, start + (inside - start) * 3 / 4, inside);
            hand.follows = [this] {
                for (const Split &split : splitsOf(kName)) // without rows the batch is cut
                    QVERIFY(split.dimension != m_dimension);
                QVERIFY(m_at.workspace().tableText().find("split") == std::string::npos);
            };
            return hand;
        });
    }

    void anAxisIsDroppedOnAChip()
    {
        open(4, {}, "mesh dp=2 tp=2\n");
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            const QPoint place = chipAt(m_at, freeChip(m_at));
            m_data.setData(QStringLiteral("application/x-planloom-axis"), "tp");
            hand.steps = {[this, place] {
                QDragEnterEvent enter(place, Qt::CopyAction, &m_data, Qt::LeftButton, {});
                QApplication::sendEvent(m_at.dag(), &enter);
                QDragMoveEvent move(place, Qt::CopyAction, &m_data, Qt::LeftButton, {});
                QApplication::sendEvent(m_at.dag(), &move);
                QVERIFY(move.isAccepted());
            }};
            hand.letGo = [this] {
                QDragLeaveEvent leave;
                QApplication::sendEvent(m_at.dag(), &leave);
            };
            hand.finish = [this, place] {
                QDropEvent drop(place, Qt::CopyAction, &m_data, Qt::LeftButton, {});
                QApplication::sendEvent(m_at.dag(), &drop);
            };
            hand.rows = {QStringLiteral("over tp")};
            hand.follows = [this] {
                QCOMPARE(splitsOf(kName).back().axis, std::string("tp"));
                QCOMPARE(splitsOf(kName).back().parts, 2);
            };
            return hand;
        });
    }

    void tSplitsByALine()
    {
        open(4, "single");
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            hand.steps = {[this] { QTest::keyClick(m_at.dag(), Qt::Key_T); },
                [this] {
                    auto *editor = qobject_cast<SplitEditor *>(m_at.dag()->gestures().editor());
                    QVERIFY(editor);
                    auto *dimension = editor->findChildren<QComboBox *>().front();
                    dimension->setCurrentIndex(dimension->count() - 1);
                    QTest::keyClick(editor->findChild<QSpinBox *>(), Qt::Key_Up);
                }};
            hand.finish = [this] { key(m_at.dag(), Qt::Key_Return); };
            hand.rows = {QStringLiteral("by 4")};
            hand.follows = [this] { QCOMPARE(splitsOf(kName).back().parts, 4); };
            return hand;
        });
    }

    void shiftTReplicatesByALine()
    {
        open(4, {}, "mesh dp=2 tp=2\n");
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            hand.steps = {[this] { QTest::keyClick(m_at.dag(), Qt::Key_T, Qt::ShiftModifier); },
                [this] {
                    QVERIFY(m_at.dag()->gestures().editor());
                    m_at.dag()->gestures().editor()->findChildren<QComboBox *>().back()->setCurrentIndex(2);
                }};
            hand.finish = [this] { key(m_at.dag(), Qt::Key_Return); };
            hand.rows = {QStringLiteral("replicate "), QStringLiteral("over tp")};
            hand.follows = [this] { QVERIFY(splitsOf(kName).back().kind == SplitKind::Replicate); };
            return hand;
        });
    }

    void aBodyIsDroppedOnADevice()
    {
        open(4, "single");
        dropping(4, {}, QStringLiteral(": devices 3"), [this] {
            for (const char *name : {"h.0.mlp.c_fc", "h.1.mlp.c_fc", "h.3.mlp.c_fc"})
                QCOMPARE(devicesOf(name), std::vector<DeviceId>{DeviceId{3}});
        });
    }

    void aBodyIsDroppedWithShift()
    {
        open(4, "single");
        dropping(4, Qt::ShiftModifier, QStringLiteral(": devices 3"), [this] {
            QCOMPARE(devicesOf("h.0.mlp.c_fc"), std::vector<DeviceId>{DeviceId{3}});
            QCOMPARE(devicesOf("h.1.mlp.c_fc"), std::vector<DeviceId>{DeviceId{0}});
        });
    }

    void aBodyIsDroppedOnAGroupWithAlt()
    {
        open(32, {}, "mesh pp=8 tp=4\nplace all : devices 0\n");
        // The hosts come behind Free; the first of them.
        std::int32_t tile = 1;
        dropping(tile, Qt::AltModifier, QStringLiteral("replicate "), [this] {
            QVERIFY(devicesOf(kName).size() > 1);
            QVERIFY(splitsOf(kName).back().kind == SplitKind::Replicate);
            QCOMPARE(splitsOf(kName).back().parts, static_cast<std::int32_t>(devicesOf(kName).size()));
        });
    }

    void aBodyIsDroppedOnFree()
    {
        open(4, {}, "place name:*.mlp.c_fc : devices 2\n");
        QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
        QCOMPARE(devicesOf(kName), std::vector<DeviceId>{DeviceId{2}});
        dropping(0, {}, {}, [this] { QVERIFY(devicesOf(kName) != std::vector<DeviceId>{DeviceId{2}}); });
    }

    void aRowInTheWayIsNamedAndOSwitchesItOff()
    {
        openLimited();
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            const QPoint start = middleOf(m_at, boxOf(m_at, kName));
            QWidget *dag = m_at.dag();
            const auto on = [this] {
                return m_at.dag()->gestures().tileRect(1).center().toPoint();
            }; // behind Free
            hand.steps = {[=] { pressAt(dag, start); }, [=] { moveTo(dag, start + QPoint(0, 20)); },
                [=] { moveTo(dag, on()); },
                [this, dag] {
                    waitForTag(QStringLiteral("in the way: row 2, limit time"));
                    QVERIFY(m_at.dag()->gestures().tag().contains(QStringLiteral("O switches it off too")));
                    QTest::keyClick(dag, Qt::Key_O);
                    waitForTag(QStringLiteral("O leaves it on"));
                }};
            hand.letGo = [=] { releaseAt(dag, QPoint(20, dag->height() - 30)); };
            hand.finish = [=] { releaseAt(dag, on()); };
            hand.rows = {QStringLiteral(": devices 0"), QStringLiteral("off limit time")};
            hand.follows = [this] { QCOMPARE(devicesOf(kName), std::vector<DeviceId>{DeviceId{0}}); };
            return hand;
        });
    }

    void inALineAltOSwitchesIt()
    {
        openLimited();
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            hand.steps = {[this] { QTest::keyClick(m_at.dag(), Qt::Key_G); },
                [this] {
                    QVERIFY(m_at.dag()->gestures().editor());
                    QTest::keyClicks(
                        m_at.dag()->gestures().editor()->findChild<QLineEdit *>(), QStringLiteral("0"));
                },
                [this] {
                    waitForTag(QStringLiteral("Alt+O switches it off too"));
                    key(m_at.dag(), Qt::Key_O, Qt::AltModifier);
                    waitForTag(QStringLiteral("Alt+O leaves it on"));
                }};
            hand.finish = [this] { key(m_at.dag(), Qt::Key_Return); };
            hand.rows = {QStringLiteral(": devices 0"), QStringLiteral("off limit time")};
            hand.follows = [this] { QCOMPARE(devicesOf(kName), std::vector<DeviceId>{DeviceId{0}}); };
            return hand;
        });
    }

    void gPlacesByALine()
    {
        open(4, "single");
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            hand.steps = {[this] { QTest::keyClick(m_at.dag(), Qt::Key_G); },
                [this] {
                    QVERIFY(m_at.dag()->gestures().editor());
                    QTest::keyClicks(
                        m_at.dag()->gestures().editor()->findChild<QLineEdit *>(), QStringLiteral("1"));
                }};
            hand.finish = [this] { key(m_at.dag(), Qt::Key_Return); };
            hand.rows = {QStringLiteral(": devices 1")};
            hand.follows = [this] { QCOMPARE(devicesOf(kName), std::vector<DeviceId>{DeviceId{1}}); };
            return hand;
        });
    }

    void aHandleIsDroppedOnAnother()
    {
        open(4, "single");
        walk(m_at, [this] {
            HandGesture hand = base(kAttention);
            const std::int32_t from = boxOf(m_at, kAttention);
            m_at.dag()->zoomBy(0.3 / m_at.dag()->camera().scale);
            const std::int32_t to = boxOf(m_at, kName);
            const QPointF off = QRectF(m_at.dag()->rect()).center()
                - (m_at.dag()->viewRect(to).center() + m_at.dag()->viewRect(from).center()) / 2;
            m_at.dag()->panBy(off.x(), off.y());
            const QPoint start = m_at.dag()->gestures().handleRect(from).center().toPoint();
            const QPoint end = middleOf(m_at, to);
            if (!m_at.dag()->rect().contains(start) || !m_at.dag()->rect().contains(end))
                QTest::qFail("both must be in sight", __FILE__, __LINE__);
            byMouse(hand, start, start + QPoint(12, 4), end);
            hand.rows = {QStringLiteral("order ")};
            hand.follows = [this] { hasOrder(kAttention, kName); };
            return hand;
        });
    }

    void bOrdersByALine()
    {
        open(4, "single");
        walk(m_at, [this] {
            HandGesture hand = base(kAttention);
            hand.steps = {[this] { QTest::keyClick(m_at.dag(), Qt::Key_B); },
                [this] {
                    QVERIFY(m_at.dag()->gestures().editor());
                    QTest::keyClicks(m_at.dag()->gestures().editor()->findChild<QLineEdit *>(),
                        QStringLiteral("h.0.mlp.c_fc"));
                }};
            hand.finish = [this] { key(m_at.dag(), Qt::Key_Return); };
            hand.rows = {QStringLiteral("order ")};
            hand.follows = [this] { hasOrder(kAttention, kName); };
            return hand;
        });
    }

    void controlGStages()
    {
        open(4, {}, "");
        walk(m_at, [this] {
            HandGesture hand = base(kName);
            m_at.window->selection().select(secondHalf());
            hand.steps = {[this] { QTest::keyClick(m_at.dag(), Qt::Key_G, Qt::ControlModifier); },
                [this] {
                    QVERIFY(m_at.dag()->gestures().editor());
                    QTest::keyClick(m_at.dag()->gestures().editor()->findChild<QSpinBox *>(), Qt::Key_Up);
                }};
            hand.finish = [this] { key(m_at.dag(), Qt::Key_Return); };
            hand.rows = {QStringLiteral("stage ")};
            hand.follows = [this] { QCOMPARE(m_at.decision(m_at.named("h.3.mlp.c_fc")).stage, StageId{1}); };
            return hand;
        });
    }

    void anOrdersArrowGetsAnotherEnd()
    {
        open(2, {}, kOrder);
        walk(m_at, [this] {
            HandGesture hand = base("h.0.attn.v_attn");
            seeOrders();
            const QPoint end = m_at.dag()->gestures().orderArrow(0).p2().toPoint();
            const QPoint target = m_at.dag()->viewRect(boxOf(m_at, "h.0.attn.v_attn")).center().toPoint();
            byMouse(hand, end, end + QPoint(0, 10), target);
            hand.rows = {QStringLiteral("before name:h.0.attn.v_attn")};
            hand.follows = [this] { hasOrder("h.0.attn.k_attn", "h.0.attn.v_attn"); };
            return hand;
        });
    }

    void oAndF2EditAnOrder()
    {
        open(2, {}, kOrder);
        walk(m_at, [this] {
            HandGesture hand = base("h.0.attn.k_attn");
            seeOrders();
            hand.steps = {[this] {
                              QTest::keyClick(m_at.dag(), Qt::Key_O);
                              QTest::keyClick(m_at.dag(), Qt::Key_F2);
                          },
                [this] {
                    auto *editor = m_at.dag()->gestures().editor();
                    QVERIFY(editor);
                    editor->findChildren<QLineEdit *>().back()->setText(
                        QStringLiteral("name:h.0.attn.v_attn"));
                }};
            hand.finish = [this] { key(m_at.dag(), Qt::Key_Return); };
            hand.rows = {QStringLiteral("before name:h.0.attn.v_attn")};
            hand.follows = [this] { hasOrder("h.0.attn.k_attn", "h.0.attn.v_attn"); };
            return hand;
        });
    }

    void rRecomputes()
    {
        open(4, "single");
        pressing(Qt::Key_R, {}, QStringLiteral("recompute "),
            [this] { QVERIFY(m_at.decision(m_at.named(kName)).recomputeGroup >= 0); });
    }

    void pHolds()
    {
        open(2, {}, "");
        const auto before = devicesOf(kName);
        pressing(Qt::Key_P, {}, QStringLiteral("place "), [this, before] {
            QCOMPARE(devicesOf(kName), before);
            QVERIFY(!m_at.decision(m_at.named(kName)).rows.empty());
        });
    }

    void shiftPFrees() { freeing(Qt::Key_P, Qt::ShiftModifier); }
    void deleteRemovesTheRowsHere() { freeing(Qt::Key_Delete, {}); }

private:
    void open(int devices, const char *gallery, const char *rows = "")
    {
        m_at.workspace().openWith({kSmallGpt, {}, {}}, "dgx-a100", devices, gallery ? gallery : "", rows);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_at.workspace().model() && m_at.settled() && m_at.workspace().lastGood(), kPatience);
        QVERIFY(m_at.workspace().lastGood()->table == m_at.workspace().table());
        openOneLayer(m_at);
    }

    /// As much time as the plan takes with two devices at work: one of them alone needs more.
    void openLimited()
    {
        open(2, {}, "place name:*.mlp.c_fc : devices 1\n");
        Workspace &workspace = m_at.workspace();
        const auto microseconds =
            static_cast<std::int64_t>(workspace.lastGood()->summary.stepSeconds * 1.01e6);
        workspace.editTable(QStringLiteral("limit time"),
            insertText(workspace.table(), workspace.table().lineCount(),
                "limit time " + std::to_string(microseconds) + "us"));
        QTRY_VERIFY_WITH_TIMEOUT(m_at.settled(), kPatience);
        QCOMPARE(workspace.latest()->errorCount(), std::size_t{0});
    }
    void waitForTag(const QString &words)
    {
        const auto tag = [this] { return m_at.dag()->gestures().tag(); };
        QVERIFY2(QTest::qWaitFor([&] { return tag().contains(words); }, kPatience), qPrintable(tag()));
    }

    void seeOrders() { QTRY_VERIFY_WITH_TIMEOUT(!m_at.dag()->orders().empty(), kPatience); }

    HandGesture base(const char *name)
    {
        HandGesture hand;
        hand.canvas = m_at.dag();
        const std::int32_t box = selectOperator(m_at, name);
        if (m_at.dag()->gestures().chipBox() != box)
            QTest::qFail("the operator is not selected", __FILE__, __LINE__);
        return hand;
    }

    void byMouse(HandGesture &hand, QPoint from, QPoint first, QPoint to, Qt::KeyboardModifiers held = {})
    {
        QWidget *dag = m_at.dag();
        hand.steps = {
            [=] { pressAt(dag, from); }, [=] { moveTo(dag, first, held); }, [=] { moveTo(dag, to, held); }};
        hand.letGo = [=] {
            moveTo(dag, to + QPoint(3, 3));
            releaseAt(dag, to + QPoint(3, 3));
        };
        hand.finish = [=] { releaseAt(dag, to, held); };
    }

    void pulling(const std::function<void(QPoint)> &more, Qt::KeyboardModifiers held, SplitKind kind,
        const QString &row)
    {
        open(4, "single");
        walk(m_at, [&] {
            HandGesture hand = base(kName);
            const QPoint start = chipAt(m_at, freeChip(m_at));
            const QPoint end = start + QPoint(0, 40);
            byMouse(hand, start, start + QPoint(0, 10), end, held);
            if (more)
                hand.steps.push_back([more, end] { more(end); });
            hand.steps.push_back([this, kind] {
                QVERIFY(m_at.dag()->gestures().gestures().splitKind() == kind);
                m_parts = m_at.dag()->gestures().gestures().parts();
            });
            hand.rows = {row};
            hand.follows = [this, kind] {
                QVERIFY(m_parts > 1);
                QCOMPARE(splitsOf(kName).size(), std::size_t{1});
                QVERIFY(splitsOf(kName).back().kind == kind);
                QCOMPARE(splitsOf(kName).back().parts, m_parts);
                QCOMPARE(splitsOf("h.3.mlp.c_fc").back().parts, m_parts); // its copies go with it
            };
            return hand;
        });
    }

    void dropping(std::int32_t tile, Qt::KeyboardModifiers held, const QString &row,
        const std::function<void()> &follows)
    {
        walk(m_at, [&] {
            HandGesture hand = base(kName);
            const QPoint start = middleOf(m_at, boxOf(m_at, kName));
            QWidget *dag = m_at.dag();
            const auto on = [this, tile] { return m_at.dag()->gestures().tileRect(tile).center().toPoint(); };
            hand.steps = {[=] { pressAt(dag, start); }, [=] { moveTo(dag, start + QPoint(0, 20), held); },
                [=] { moveTo(dag, on(), held); }};
            hand.letGo = [=] { releaseAt(dag, QPoint(20, dag->height() - 30)); };
            hand.finish = [=] { releaseAt(dag, on(), held); };
            if (!row.isEmpty())
                hand.rows = {row};
            hand.follows = follows;
            return hand;
        });
    }

    void pressing(
        Qt::Key pressed, Qt::KeyboardModifiers held, const QString &row, const std::function<void()> &follows)
    {
        press(m_at, [&] {
            HandGesture hand = base(kName);
            hand.finish = [this, pressed, held] { QTest::keyClick(m_at.dag(), pressed, held); };
            if (!row.isEmpty())
                hand.rows = {row};
            hand.follows = follows;
            return hand;
        });
    }

    void freeing(Qt::Key pressed, Qt::KeyboardModifiers held)
    {
        open(4, {}, "place name:*.mlp.c_fc : devices 2\n");
        pressing(pressed, held, {}, [this] {
            QVERIFY(m_at.workspace().tableText().find("c_fc") == std::string::npos);
            QVERIFY(devicesOf(kName) != std::vector<DeviceId>{DeviceId{2}});
        });
    }

    std::vector<OperatorId> secondHalf() const
    {
        std::vector<OperatorId> result;
        bool in = false;
        for (std::size_t i = 0; i < m_at.graph().operators.size(); ++i) {
            const Operator &op = m_at.graph().operators[i];
            in = in || op.name.rfind("h.2.", 0) == 0;
            if (in && op.direction == Direction::Forward)
                result.push_back(OperatorId{static_cast<std::int32_t>(i)});
        }
        return result;
    }
    const std::vector<Split> &splitsOf(const char *name) const
    {
        return m_at.decision(m_at.named(name)).partition.splits;
    }
    std::vector<DeviceId> devicesOf(const char *name) const
    {
        return m_at.decision(m_at.named(name)).devices;
    }
    void hasOrder(const char *first, const char *second) const
    {
        for (const OrderConstraint &order : m_at.workspace().lastGood()->plan->orders) {
            if (order.first == m_at.named(first) && order.second == m_at.named(second))
                return;
        }
        QFAIL("the plan does not have that order");
    }

    WindowForTests m_at;
    QMimeData m_data;
    std::int32_t m_parts = 0;
    std::int32_t m_dimension = -1;
};

PLANLOOM_QTEST(DagHandsTest)
#include "dag_hands_test.moc"
