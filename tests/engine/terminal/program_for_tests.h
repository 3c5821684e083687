#pragma once

#include "engine/terminal/program.h"

namespace planloom {

/// A program with what tables may hold: verbs with and without words, switches, values of every kind, signs
/// that mean something to shells and roff.
inline const ProgramSpec &programForTests()
{
    static const ProgramSpec kProgram{.name = "weave-it",
        .version = "1.2.3",
        .meaning = "weaves",
        .paragraphs = {"A cloth is a file; it's woven."},
        .verbs = {{"warp", "CLOTH FILE", "winds threads: 100% of them",
                      {{"colour", "red|green", "colour of [all] threads (default: red)", {}},
                          {"out", "FILE", "where to", {}}, {"folder", "DIR", "what's kept", {}},
                          {"loom", "NAME", "which loom", {"hand", "power"}},
                          {"fast", "", "without care", {}}},
                      "weave-it warp a b --colour red", {}, {}},
            {"weft", "", "draws a thread through", {{"count", "N", "how often", {}}},
                "weave-it weft --count 2", {}, ".begins with a dot"}},
        .environment = {{"LOOM", "where it stands"}},
        .files = {},
        .seeAlso = {"spin-it"}};
    return kProgram;
}

/// One without verbs.
inline const ProgramSpec &plainProgramForTests()
{
    static const ProgramSpec kProgram{.name = "spin",
        .version = "1.2.3",
        .meaning = "spins",
        .paragraphs = {},
        .verbs = {{"", "[FILE]", "spins a thread", {{"twist", "s|z", "its direction", {}}}, "spin --twist z",
            {}, {}}},
        .environment = {},
        .files = {},
        .seeAlso = {}};
    return kProgram;
}

} // namespace planloom
