// A thousand random edits through the window's workspace: undo leads back through every state, byte for byte; so does a window
// that opened the session's file anew.

#include <QtCore/QObject>
#include <QtTest/QTest>

#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"

#include <map>
#include <random>

using namespace planloom;

namespace {

constexpr int kEdits = 1000;
constexpr const char *kRoot = "# the first line, with two  spaces \n\nmesh dp=2 tp=2\nplace layer:0-1 : devices 0\t\nsplit all : batch by 2 over dp # mine\nno row at all";

const std::vector<std::string> kRows{"place layer:0 : devices 1", "split name:*.mlp.c_fc : out0.-1 by 2", "recompute layer:* per layer",
    "off recompute layer:1 per operator  # later", "# a remark", "", "   ", "split nonsense", "place : :", "stage layer:2-3 : 1",
    "order name:h.0.attn.softmax before name:h.0.mlp.c_fc", "in-flight 2", "micro-batches 2", "schedule gpipe", "\xc3\xa4\xe2\x82\xac \x01",
    "place layer:3 : devices 0,1,2,3\nrecompute layer:3 per layer", "memory <= 40 GiB"};

using Design = std::pair<std::string, std::map<std::string, std::string>>;

class RandomPerson
{
public:
    RandomPerson(Workspace &workspace, unsigned seed)
        : m_workspace(workspace)
        , m_random(seed)
    {
    }

    void edit()
    {
        const TableDocument table = m_workspace.table();
        const auto line = [&] { return static_cast<std::int32_t>(below(static_cast<std::size_t>(table.lineCount()) + 1)); };
        switch (below(14)) {
        case 0:
        case 1:
            change("a row", insertText(table, line(), row()));
            break;
        case 2:
            change("another text", replaceLine(table, line(), row()));
            break;
        case 3:
            change("fewer rows", removeLines(table, {line(), line()}));
            break;
        case 4:
            change("switched", setEnabled(table, {line(), line(), line()}, below(2) == 0));
            break;
        case 5:
            change("moved", moveLines(table, {line(), line()}, line()));
            break;
        case 6:
            type();
            break;
        case 7:
            m_workspace.setDeviceCount(static_cast<std::int32_t>(1 + below(8)));
            break;
        case 8:
            m_workspace.setCluster(below(2) == 0 ? "dgx-a100" : "dgx2-v100");
            break;
        case 9:
            m_workspace.setValue(QStringLiteral("a note"), "note/" + std::to_string(below(5)),
                below(3) == 0 ? std::nullopt : std::optional<std::string>(row()));
            break;
        default:
            gesture();
            break;
        }
    }

private:
    std::size_t below(std::size_t count) { return m_random() % count; }
    const std::string &row() { return kRows[below(kRows.size())]; }
    void change(const char *words, const TableEdit &edit) { m_workspace.editTable(QString::fromLatin1(words), edit); }

    void type()
    {
        std::string text = m_workspace.tableText();
        const std::size_t place = below(text.size() + 1);
        if (below(2) == 0)
            text.insert(place, row());
        else
            text.erase(place, below(9));
        m_workspace.setTableText(text);
    }

    void gesture()
    {
        const GestureContextSnapshot context = m_workspace.gestureContext();
        if (!context || !context->plan)
            return;
        const auto forward = static_cast<std::size_t>(m_workspace.model()->forwardOperators);
        std::vector<OperatorId> operators;
        for (std::size_t i = 0, first = below(forward), count = 1 + below(4); i < count && first + i < forward; ++i)
            operators.push_back(OperatorId{static_cast<std::int32_t>(first + i)});
        const auto device = DeviceId{static_cast<std::int32_t>(below(static_cast<std::size_t>(context->deviceCount)))};
        Proposal proposal;
        switch (below(7)) {
        case 0: {
            const auto chips = chipsOf(*context, operators.front());
            if (chips.empty())
                return;
            const DimensionChip &chip = chips[below(chips.size())];
            proposal = proposeSplit(*context, {.operators = {operators.front()}, .on = operators.front(), .dimension = chip.dimension,
                .parts = static_cast<std::int32_t>(1 + below(4))});
            break;
        }
        case 1:
            proposal = proposePlace(*context, {.operators = operators, .devices = {device}, .replicate = below(3) == 0});
            break;
        case 2:
            proposal = proposeOrder(*context, {.first = operators, .second = {OperatorId{static_cast<std::int32_t>(below(forward))}}});
            break;
        case 3:
            proposal = proposeStage(*context, operators, StageId{static_cast<std::int32_t>(below(2))});
            break;
        case 4:
            proposal = proposeRecompute(*context, operators);
            break;
        case 5:
            proposal = proposeHold(*context, operators);
            break;
        default:
            proposal = proposeFree(*context, operators);
            break;
        }
        m_workspace.preview(proposal);
        m_workspace.commit(proposal);
    }

    Workspace &m_workspace;
    std::mt19937 m_random;
};

Design designOf(const Workspace &workspace)
{
    return {workspace.tableText(), workspace.history().state().values};
}

} // namespace

class UndoTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyStepIsUndone()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        Workspace &workspace = at.workspace();
        workspace.openWith({"zoo:gpt?layers=4&hidden=32&heads=4&seq=16&vocab=64&batch=8", {}, {}}, "dgx-a100", 4, {}, kRoot);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QCOMPARE(workspace.tableText(), std::string(kRoot));
        const Design root = designOf(workspace);

        std::map<StepId, Design> states{{0, root}};
        RandomPerson person(workspace, 20);
        for (int i = 0; i < kEdits; ++i) {
            person.edit();
            states[workspace.history().current()] = designOf(workspace);
            if (i % 20 == 0)
                QCoreApplication::processEvents(); // plans and files go on meanwhile
        }
        QVERIFY(states.size() > std::size_t{kEdits / 2});
        const Design last = designOf(workspace);
        QVERIFY(last != root);

        // By the key, a step at a time.
        at.dag()->setFocus();
        while (workspace.canUndo()) {
            QTest::keyClick(at.dag(), Qt::Key_Z, Qt::ControlModifier);
            QVERIFY(designOf(workspace) == states.at(workspace.history().current()));
        }
        QCOMPARE(workspace.history().current(), StepId{0});
        QCOMPARE(workspace.tableText(), std::string(kRoot));
        QVERIFY(designOf(workspace) == root);
        while (workspace.canRedo())
            workspace.redo();
        QVERIFY(designOf(workspace) == last);
        const auto steps = workspace.history().steps().size();

        // From the file alone.
        QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kPatience);
        const QString path = workspace.path();
        at.window.reset();
        at.open(folder.path());
        at.window->openHere(path);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().model() && at.workspace().latest(), kPatience);
        Workspace &again = at.workspace();
        QCOMPARE(again.history().steps().size(), steps);
        QVERIFY(designOf(again) == last);
        while (again.canUndo()) {
            again.undo();
            QVERIFY(designOf(again) == states.at(again.history().current()));
        }
        QCOMPARE(again.tableText(), std::string(kRoot));
        QVERIFY(designOf(again) == root);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && again.isAcknowledged(), kPatience);
    }
};

PLANLOOM_QTEST(UndoTest)
#include "undo_test.moc"
