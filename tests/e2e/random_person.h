#pragma once

#include "tests/e2e/window_for_tests.h"

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace planloom {

/// Edits a design at random, as a person might: rows right and wrong, text, values, gestures. The same seed
/// gives the same edits of the same states.
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
        const auto line = [&] {
            return static_cast<std::int32_t>(below(static_cast<std::size_t>(table.lineCount()) + 1));
        };
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

    std::size_t below(std::size_t count) { return m_random() % count; }

private:
    const std::string &row()
    {
        static const std::vector<std::string> kRows{"place layer:0 : devices 1",
            "split name:*.mlp.c_fc : out0.-1 by 2", "recompute layer:* per layer",
            "off recompute layer:1 per operator  # later", "# a remark", "", "   ", "split nonsense",
            "place : :", "stage layer:2-3 : 1", "order name:h.0.attn.attention before name:h.0.mlp.c_fc",
            "in-flight 2", "micro-batches 2", "schedule gpipe", "\xc3\xa4\xe2\x82\xac \x01",
            "place layer:3 : devices 0,1,2,3\nrecompute layer:3 per layer", "memory <= 40 GiB"};
        return kRows[below(kRows.size())];
    }
    void change(const char *words, const TableEdit &edit)
    {
        m_workspace.editTable(QString::fromLatin1(words), edit);
    }

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
        for (std::size_t i = 0, first = below(forward), count = 1 + below(4);
             i < count && first + i < forward; ++i)
            operators.push_back(OperatorId{static_cast<std::int32_t>(first + i)});
        const auto device =
            DeviceId{static_cast<std::int32_t>(below(static_cast<std::size_t>(context->deviceCount)))};
        Proposal proposal;
        switch (below(7)) {
        case 0: {
            const auto chips = chipsOf(*context, operators.front());
            if (chips.empty())
                return;
            const DimensionChip &chip = chips[below(chips.size())];
            proposal = proposeSplit(*context,
                {.operators = {operators.front()},
                    .on = operators.front(),
                    .dimension = chip.dimension,
                    .parts = static_cast<std::int32_t>(1 + below(4))});
            break;
        }
        case 1:
            proposal = proposePlace(
                *context, {.operators = operators, .devices = {device}, .replicate = below(3) == 0});
            break;
        case 2:
            proposal = proposeOrder(*context,
                {.first = operators, .second = {OperatorId{static_cast<std::int32_t>(below(forward))}}});
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

} // namespace planloom
