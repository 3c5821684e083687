#pragma once

#include "engine/runtime/machine/probe.h"

#include <cstddef>
#include <string>
#include <vector>

namespace planloom {

/// What was found of an installation and its machine; a path or a version is empty where there is none.
struct InstallationFacts {
    std::string version{}; ///< Of Planloom.
    std::string window{}; ///< Path of the program planloom.
    std::string layoutHelper{}; ///< Path of planloom-layout.
    std::string runner{}; ///< Path of planloom-exec.
    std::string display{}; ///< ":0", "wayland-0".
    std::string oneDnn{}; ///< Version.
    std::string plugin{}; ///< Path of the CUDA plugin.
    std::string pluginProblem{}; ///< Why it cannot be used; empty if it can.
    std::string oldestNccl = "2.18"; ///< That can be used.
    std::string python{}; ///< Path of the interpreter.
    std::string torch{}; ///< Version of its package torch.
    Probe probe{};
};

enum class FeatureState {
    Ready,
    Slow, ///< It works; something that is missing would make it better.
    Missing, ///< It does not work.
};

/// Something that is missing: in a sentence, with what to do.
struct Lack {
    std::string what{};
    std::string remedy{};
    friend bool operator==(const Lack &, const Lack &) = default;
};

/// One thing that a person may want of Planloom, and whether this machine does it.
struct Finding {
    std::string
        name{}; ///< One word, by which it is asked for: "plan", "cpu", "window", "gpu", "gpus", "torch".
    std::string feature{}; ///< "runs on several GPUs (--backend cuda)"
    FeatureState readiness = FeatureState::Ready;
    std::string found{}; ///< What is there for it.
    std::vector<Lack> lacks{};
    friend bool operator==(const Finding &, const Finding &) = default;
};

/// Every feature, always in the same order.
std::vector<Finding> examine(const InstallationFacts &facts);

/// For people, in lines of at most `width` letters: one page.
std::string pageOf(const InstallationFacts &facts, const std::vector<Finding> &findings, std::size_t width);

} // namespace planloom
